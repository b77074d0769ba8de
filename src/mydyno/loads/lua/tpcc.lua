-- TPC-C for sysbench 1.0 and 1.1, written from the specification (TPC, revision 5.11): its nine
-- tables as `--tables` independent sets of `--scale` warehouses each.
--
-- Commands, in this order: cleanup, create, load, finish, check; then run, and check again.
-- `load`, `finish` and `check` share their work among `--threads`.

local here = debug.getinfo(1, "S").source:match("^@(.*/)")
package.path = here .. "?.lua;" .. package.path

sysbench.cmdline.options = {
   tables = {"Sets of the nine tables", 1},
   scale = {"Warehouses in each set", 1},
   seed = {"Where the run's random numbers begin", 1},
   first_warehouse = {"Check from this warehouse of all sets on", 1},
   warehouses = {"Check so many warehouses; 0: all", 0},
   think_times = {"Terminals key and think as the specification has it (clause 5.2.5)", false},
   foreign_keys = {"Declare the foreign keys", false},
   history_key = {"Give the table history a primary key of its own", false},
   repeated_text = {"Make long texts of one sign, so that rows compress", false},
   mysql_storage_engine = {"Storage engine", "innodb"},
   create_table_options = {"Further options of each table", ""},
}

local schema = require("tpcc.schema")
local load = require("tpcc.load")
local checks = require("tpcc.checks")
local terminal = require("tpcc.terminal")

local PARALLEL = sysbench.cmdline.PARALLEL_COMMAND

sysbench.cmdline.commands = {
   cleanup = {schema.cleanup},
   create = {schema.create},
   load = {load.load, PARALLEL},
   finish = {schema.finish, PARALLEL},
   check = {checks.check, PARALLEL},
}

init = terminal.init
thread_init = terminal.thread_init
event = terminal.event
thread_done = terminal.thread_done
sysbench.hooks.before_restart_event = terminal.before_restart

-- Read by report.lua: what has been counted by kind since it asked last.
own_latencies = terminal.latencies

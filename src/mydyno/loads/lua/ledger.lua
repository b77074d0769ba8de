-- A load that keeps a ledger of its commits: each transaction inserts a numbered row and changes a row
-- of a page that others change too; once the commit is acknowledged, a line goes to standard output.
--
-- Lines: ack <client> <number> <seconds of the monotonic clock>.  Commands: cleanup, prepare; then run.

local ffi = require("ffi")

pcall(ffi.cdef, [[
struct mydyno_timespec { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct mydyno_timespec *found);
]])

sysbench.cmdline.options = {
   pages = {"Rows of the table whose pages are changed", 50000},
   seed = {"Where the run's random numbers begin", 1},
   mysql_storage_engine = {"Storage engine", "innodb"},
}

local MONOTONIC = 1
local PAD = string.rep("x", 180)
local ROWS = 500 -- an INSERT of the preparation

local function connect()
   con = sysbench.sql.driver():connect() -- global: report.lua asks it about the session
end

local function cleanup()
   connect()
   con:query("DROP TABLE IF EXISTS ledger")
   con:query("DROP TABLE IF EXISTS page")
   con:disconnect()
end

local function prepare()
   connect()
   local engine = " ENGINE=" .. sysbench.opt.mysql_storage_engine
   con:query("CREATE TABLE ledger (client INT NOT NULL, number BIGINT NOT NULL, "
      .. "mark VARCHAR(40) NOT NULL, pad CHAR(180) NOT NULL, PRIMARY KEY (client, number))" .. engine)
   con:query("CREATE TABLE page (id INT NOT NULL PRIMARY KEY, mark VARCHAR(40) NOT NULL, "
      .. "pad CHAR(180) NOT NULL)" .. engine)
   for first = 1, sysbench.opt.pages, ROWS do
      local rows = {}
      for id = first, math.min(first + ROWS - 1, sysbench.opt.pages) do
         rows[#rows + 1] = string.format("(%d, '', '%s')", id, PAD)
      end
      con:query("INSERT INTO page VALUES " .. table.concat(rows, ","))
   end
   con:disconnect()
end

sysbench.cmdline.commands = {cleanup = {cleanup}, prepare = {prepare}}

local client, number
local now = ffi.new("struct mydyno_timespec")

function thread_init()
   connect()
   client = sysbench.tid
   -- where the data set is not restored between runs, after the last one
   number = tonumber(con:query_row("SELECT COALESCE(MAX(number), 0) FROM ledger WHERE client = " .. client))
end

function event()
   number = number + 1
   local mark = string.format("mydyno-%d-%d;", client, number)
   con:query("BEGIN")
   con:query(string.format("INSERT INTO ledger VALUES (%d, %d, '%s', '%s')", client, number, mark, PAD))
   con:query(string.format("UPDATE page SET mark = '%s' WHERE id = %d", mark,
      sysbench.rand.uniform(1, sysbench.opt.pages)))
   con:query("COMMIT")
   ffi.C.clock_gettime(MONOTONIC, now)
   io.stdout:write(string.format("ack %d %d %d.%09d\n", client, number,
      tonumber(now.seconds), tonumber(now.nanoseconds)))
   io.stdout:flush()
end

function thread_done()
   con:disconnect()
end

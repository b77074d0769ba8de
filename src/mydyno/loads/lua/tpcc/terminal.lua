-- What each thread does: draws a card, runs that transaction, counts how long it took.

local counts = require("tpcc.counts")
local random = require("tpcc.random")
local transactions = require("tpcc.transactions")
local ffi = require("ffi")

pcall(ffi.cdef, "int usleep(unsigned int microseconds);")

local M = {}

local TERMINALS = 10 -- of each warehouse
local connection, deck, pending

function M.init() counts.allocate(sysbench.opt.threads) end

function M.thread_init(thread)
   local opt = sysbench.opt
   connection = sysbench.sql.driver():connect()
   con = connection -- report.lua asks it what the session is
   counts.attach(thread)
   random.choose_constants(opt.seed)
   math.randomseed(opt.seed * 65536 + thread)
end

function M.thread_done() connection:disconnect() end

-- Clause 5.2.4.2: cards are drawn until there are none, and then shuffled again.
local function card()
   if not deck or #deck == 0 then
      local order = random.permutation(100)
      deck = {}
      for kind, each in ipairs(transactions.kinds) do
         for _ = 1, each.share do deck[order[#order]], order[#order] = kind, nil end
      end
   end
   return table.remove(deck)
end

-- Where the transaction comes from.  With think times a thread is one terminal, at home in one
-- warehouse and one district; without them each stands for all, so that all data are worked on.
local function home()
   local opt = sysbench.opt
   local all = opt.tables * opt.scale
   local terminal = opt.think_times and sysbench.tid or math.random(all) - 1
   local place = terminal % all
   return {
      set = math.floor(place / opt.scale) + 1,
      w = place % opt.scale + 1,
      d = opt.think_times and math.floor(terminal / all) % TERMINALS + 1 or nil,
   }
end

-- Not by poll, as for a reply: a sample must show that the terminal waits for nothing.
local function sleep(seconds)
   if sysbench.opt.think_times then ffi.C.usleep(math.floor(seconds * 1e6)) end
end

-- Clause 5.2.5.4: exponential, at most ten times the mean.
local function thinking_s(mean_s) return math.min(-math.log(1 - math.random()), 10) * mean_s end

local function drawn()
   local number = card()
   local kind = transactions.kinds[number]
   local input = kind.draw(home())
   sleep(kind.key_s)
   return {number = number, kind = kind, input = input, began_s = counts.clock_s()}
end

-- Called again by sysbench, after `before_restart`, where a deadlock or a lock's timeout was met:
-- the same transaction is tried again, and its latency goes on.
function M.event()
   pending = pending or drawn()
   pending.kind.run(connection, pending.input)
   counts.count(pending.number, counts.clock_s() - pending.began_s)
   local kind = pending.kind
   pending = nil
   sleep(thinking_s(kind.think_s))
end

-- A lock's timeout undoes one statement only.
function M.before_restart() connection:query("ROLLBACK") end

function M.latencies() return ', "kinds": ' .. counts.news(sysbench.opt.threads) end

return M

-- Latencies counted by kind, in memory that all of sysbench's threads share.  Each thread writes
-- only its own counters; the reporting thread reads them all and reports the increments.
--
-- Overhead: a logarithm and an increment for each transaction.

local ffi = require("ffi")

pcall(ffi.cdef, [[
struct mydyno_time { long s; long ns; };
int clock_gettime(int clock, struct mydyno_time *now);
void *calloc(size_t count, size_t size);
int setenv(const char *name, const char *value, int overwrite);
]])

local M = {kinds = {"new_order", "payment", "order_status", "delivery", "stock_level"}}

local BUCKETS, PER_E = 2048, 100 -- 1 % apart, from 1 us to 13 minutes
local PLACE = "MYDYNO_TPCC_COUNTS" -- where the threads find the memory
local MONOTONIC = 1
local now = ffi.new("struct mydyno_time")
local counters, before, own

function M.clock_s()
   ffi.C.clock_gettime(MONOTONIC, now)
   return tonumber(now.s) + tonumber(now.ns) * 1e-9
end

local function size() return #M.kinds * BUCKETS end

-- Called once, before there are threads: the environment is the one thing their states share.
function M.allocate(threads)
   local memory = ffi.C.calloc(threads * size(), 4)
   assert(memory ~= nil, "no memory for the latency counters")
   local address = tonumber(ffi.cast("uintptr_t", memory))
   ffi.C.setenv(PLACE, ("%.0f"):format(address), 1)
end

local function shared()
   local address = tonumber(os.getenv(PLACE))
   counters = counters or ffi.cast("uint32_t *", ffi.cast("uintptr_t", address))
   return counters
end

-- Called by each thread for itself.
function M.attach(thread) own = shared() + thread * size() end

function M.count(kind, seconds)
   local bucket = math.floor(PER_E * math.log(seconds * 1e6))
   local place = (kind - 1) * BUCKETS + math.max(0, math.min(BUCKETS - 1, bucket))
   own[place] = own[place] + 1
end

local function sum(place, threads)
   local total = 0
   for thread = 0, threads - 1 do total = total + shared()[thread * size() + place] end
   return total
end

local function news_of(kind, threads)
   local parts = {}
   for bucket = 0, BUCKETS - 1 do
      local place = (kind - 1) * BUCKETS + bucket
      local total = sum(place, threads)
      local new = total - before[place]
      before[place] = total
      if new > 0 then
         parts[#parts + 1] = ("%.0f,%.0f"):format(math.exp((bucket + 0.5) / PER_E), new)
      end
   end
   return table.concat(parts, ",")
end

-- What has come since this was asked last: "new_order": [microseconds, count, ...], ...
function M.news(threads)
   before = before or ffi.new("double[?]", size())
   local parts = {}
   for kind, name in ipairs(M.kinds) do
      parts[kind] = ('"%s": [%s]'):format(name, news_of(kind, threads))
   end
   return "{" .. table.concat(parts, ", ") .. "}"
end

return M

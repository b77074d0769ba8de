-- sysbench's own oltp_read_write, each event made longer by a known share of its own time.
--
-- LUA_PATH puts this file before the bundled one; MYDYNO_DOSE is the share (0.05: 5 % longer, so
-- that one thread in a closed loop does 1 / 1.05 of the work).  What a sleep takes beyond what was
-- asked for is taken off the next one, so that the share holds whatever the timer's slack is.

local ffi = require("ffi")
ffi.cdef([[
struct dose_time { long s; long ns; };
int clock_gettime(int clock, struct dose_time *now);
int usleep(unsigned int microseconds);
]])

local MONOTONIC, LEAST_S = 1, 0.001
local share = tonumber(os.getenv("MYDYNO_DOSE") or "0")
local mine = debug.getinfo(1, "S").source:match("^@(.*)$")

for entry in package.path:gmatch("[^;]+") do
   local path = entry:gsub("?", "oltp_read_write")
   local file = path ~= mine and io.open(path)
   if file then
      file:close()
      dofile(path)
      break
   end
end

local time = ffi.new("struct dose_time")
local function now_s()
   ffi.C.clock_gettime(MONOTONIC, time)
   return tonumber(time.s) + tonumber(time.ns) / 1e9
end

local bundled, owed_s = event, 0
function event()
   local began_s = now_s()
   bundled()
   local ended_s = now_s()
   owed_s = owed_s + share * (ended_s - began_s)
   if owed_s > LEAST_S then
      ffi.C.usleep(owed_s * 1e6)
      owed_s = owed_s - (now_s() - ended_s)
   end
end

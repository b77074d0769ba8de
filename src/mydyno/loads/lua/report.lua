-- Runs a bundled sysbench script as it is, or one of ours, and prints one JSON object a line,
-- every second.
--
-- Needs sysbench 1.0 or 1.1, and the script's name in MYDYNO_SCRIPT.
-- Lines: {"event": "session", ...} once, as the first connection stands; then "second" with
-- rates per second and that second's latencies as a flat list: microseconds, count, ...
-- A script that counts its latencies itself, by kind, defines a function `own_latencies`.
--
-- Overhead: none in the threads that press.  sysbench itself counts every event into its one
-- latency histogram and folds the counts of the last interval into `temp_array` just before it
-- calls our hook; the hook reads that array in the reporting thread.  docs/reference/workloads.md
-- has the measurement.

local ffi = require("ffi")

local BUCKETS = 4096 -- sysbench's own 1024 over eight decades are 1.8 % apart; these 0.45 %

-- Only absolute entries: a file of the same name where we happen to stand must not be loaded.
local function absolute_only(path)
   local absolute = {}
   for entry in path:gmatch("[^;]+") do
      if entry:sub(1, 1) == "/" then absolute[#absolute + 1] = entry end
   end
   return table.concat(absolute, ";")
end

local here = debug.getinfo(1, "S").source:match("^@(.*/)")
package.path = here .. "?.lua;" .. absolute_only(package.path)
require(assert(os.getenv("MYDYNO_SCRIPT"), "MYDYNO_SCRIPT names no bundled script"))

-- The leading fields of sb_histogram_t, the same in 1.0.20 and 1.1; proven by `plausible`.
local declared = pcall(ffi.cdef, [[
struct mydyno_histogram {
   uint64_t *cumulative_array; uint64_t cumulative_nevents; uint64_t *temp_array;
   uint64_t **interm_slots; size_t array_size;
   double range_min, range_max, range_deduct, range_mult;
};
extern struct mydyno_histogram sb_latency_histogram;
int sb_histogram_init(struct mydyno_histogram *h, size_t size, double low, double high);
]])
-- A row of 64 bytes for each thread; the fourth is its events.  Proven by their sum.
local counters_known = pcall(ffi.cdef, "extern uint64_t (*sb_counters)[8];")
local client_known = pcall(ffi.cdef, "const char *mysql_get_client_info(void);")

local function near(a, b) return math.abs(a - b) <= 1e-9 * math.abs(b) end

-- Whether the memory reads as the histogram we know: its own invariants hold in it.
local function plausible(h)
   local size = tonumber(h.array_size)
   return size > 1 and size <= 65536 and h.range_min > 0 and h.range_max > h.range_min
      and near(h.range_deduct, math.log(h.range_min))
      and near(h.range_mult, (size - 1) / (math.log(h.range_max) - h.range_deduct))
end

local function histogram()
   local found, h = pcall(function() return declared and ffi.C.sb_latency_histogram end)
   return found and h and plausible(h) and h or nil
end

-- Before any thread exists: the same range in finer buckets.
local bundled_init = init
function init()
   if bundled_init then bundled_init() end
   local h = histogram()
   if h then assert(ffi.C.sb_histogram_init(h, BUCKETS, h.range_min, h.range_max) == 0) end
end

local function quoted(text)
   return '"' .. tostring(text):gsub('[%c"\\]', " ") .. '"'
end

-- What is mapped is what runs, whatever a preload or a package declares.
local function client_library()
   for line in io.lines("/proc/self/maps") do
      local path = line:match("(/.*/lib[%a]+%.so.*)$")
      local name = path and path:match("[^/]+$") or ""
      if name:find("^libmariadb%.") or name:find("^libmysqlclient%.")
         or name:find("^libperconaserverclient%.") then
         return path
      end
   end
   return ""
end

local function client_version()
   local found, version = pcall(function()
      return client_known and ffi.string(ffi.C.mysql_get_client_info()) or ""
   end)
   return found and version or ""
end

local function status(name)
   local found, _, value = pcall(con.query_row, con, "SHOW SESSION STATUS LIKE '" .. name .. "'")
   return found and value or ""
end

local function emit(line)
   io.write(line .. "\n")
   io.flush()
end

local function session()
   return '{"event": "session", "ssl_cipher": ' .. quoted(status("Ssl_cipher"))
      .. ', "ssl_version": ' .. quoted(status("Ssl_version"))
      .. ', "client_library": ' .. quoted(client_library())
      .. ', "client_version": ' .. quoted(client_version())
      .. ', "sysbench": ' .. quoted(sysbench.version_string)
      .. ', "luajit": ' .. quoted(require("jit").version) .. "}"
end

local bundled_thread_init = thread_init
function thread_init(...)
   bundled_thread_init(...)
   if sysbench.tid == 0 then emit(session()) end
end

-- The last interval's counts: "812,3,830,4" is three events of 812 us and four of 830 us.
local function latencies(h)
   local parts = {}
   for i = 0, tonumber(h.array_size) - 1 do
      local count = tonumber(h.temp_array[i])
      if count > 0 then
         local us = 1000 * math.exp(i / h.range_mult + h.range_deduct)
         parts[#parts + 1] = string.format("%.0f,%.0f", us, count)
      end
   end
   return table.concat(parts, ",")
end

local function latency_field()
   if own_latencies then return own_latencies() end
   local h = histogram()
   return h and ', "latency_us": [' .. latencies(h) .. "]" or ""
end

local EVENTS = 3
local by_thread, counted = {}, 0

-- The events of each thread since the last report, where their sum is what sysbench has reported.
local function threads_field(events)
   counted = counted + events
   local found, rows = pcall(function() return counters_known and ffi.C.sb_counters end)
   if own_latencies or not found or not rows or rows == nil then return "" end
   local parts, sum = {}, 0
   for thread = 0, sysbench.opt.threads - 1 do
      local total = tonumber(rows[thread][EVENTS])
      parts[#parts + 1] = string.format("%.0f", total - (by_thread[thread] or 0))
      by_thread[thread] = total
      sum = sum + total
   end
   local later = sum - counted -- what came after sysbench had read them
   if later < 0 or later > counted then
      counters_known = false
      return ""
   end
   return ', "threads": [' .. table.concat(parts, ",") .. "]"
end

local SECOND = '{"event": "second", "t_s": %.3f, "tps": %.3f, "reads": %.3f, "writes": %.3f, '
   .. '"other": %.3f, "errors": %.3f, "reconnects": %.3f, "queue_length": %.0f, "p99_s": %.6f%s%s}'

-- sysbench reads its counters and then `time_total`, folds the histogram, and only then measures
-- `time_interval`: on a busy machine that is later, so rates are taken over the total's steps.
local reported = 0

function sysbench.hooks.report_intermediate(stat)
   local s = stat.time_total - reported
   reported = stat.time_total
   emit(SECOND:format(
      stat.time_total, stat.events / s, stat.reads / s, stat.writes / s, stat.other / s,
      stat.errors / s, stat.reconnects / s, stat.queue_length or 0, stat.latency_pct,
      latency_field(), threads_field(stat.events)))
end

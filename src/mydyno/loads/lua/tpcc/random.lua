-- Random values as clauses 2.1.6 and 4.3.2 define them, from LuaJIT's own generator, which each
-- thread has for itself and seeds for itself.

local ffi = require("ffi")

local M = {}

local random = math.random
local SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
local SYLLABLES = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

-- The constant C of the last names in the data; a run's must lie 65 to 119 from it, but neither
-- 96 nor 112 (clause 2.1.6.1).
local LOADED_LAST = 123
local NEAREST, FARTHEST = 65, 119
local BARRED = {[96] = true, [112] = true}

local constants = {last = LOADED_LAST, customer = 0, item = 0}

local alphabet = ffi.new("uint8_t[?]", #SIGNS, SIGNS)
local buffer = ffi.new("uint8_t[?]", 512) -- the longest text is 500

-- Text of `base` signs: five of them are taken from each random number.
local function signs(low, high, base)
   local length, power = random(low, high), base ^ 5
   for first = 0, length - 1, 5 do
      local rest = random(power) - 1
      for place = first, first + 4 do
         local quotient = math.floor(rest / base)
         buffer[place] = rest - quotient * base
         rest = quotient
      end
   end
   return length
end

-- From so many signs on, text is one sign repeated where `repeated_text` asks for it.
local LONG = 12

-- Letters and digits: "a-string".
function M.text(low, high)
   if low >= LONG and sysbench.opt.repeated_text then
      local sign = random(#SIGNS)
      return SIGNS:sub(sign, sign):rep(random(low, high))
   end
   local length = signs(low, high, #SIGNS)
   for place = 0, length - 1 do buffer[place] = alphabet[buffer[place]] end
   return ffi.string(buffer, length)
end

-- Digits: "n-string".
function M.digits(length)
   signs(length, length, 10)
   for place = 0, length - 1 do buffer[place] = buffer[place] + 48 end
   return ffi.string(buffer, length)
end

-- Text in which one row of ten holds ORIGINAL somewhere (clause 4.3.3.1).
function M.data(low, high)
   local text = M.text(low, high)
   if random(10) > 1 then return text end
   local before = random(0, #text - 8)
   return text:sub(1, before) .. "ORIGINAL" .. text:sub(before + 9)
end

function M.zip() return M.digits(4) .. "11111" end

-- A number with `decimals` digits behind the point, from `low` to `high` of its last digit.
function M.decimal(low, high, decimals)
   return ("%." .. decimals .. "f"):format(random(low, high) / 10 ^ decimals)
end

-- Not uniform: clause 2.1.6.
local function nurand(a, low, high, constant)
   return (bit.bor(random(0, a), random(low, high)) + constant) % (high - low + 1) + low
end

function M.last_name(number)
   local hundreds, tens = math.floor(number / 100), math.floor(number / 10) % 10
   return SYLLABLES[hundreds + 1] .. SYLLABLES[tens + 1] .. SYLLABLES[number % 10 + 1]
end

function M.name_number() return nurand(255, 0, 999, constants.last) end
function M.customer() return nurand(1023, 1, 3000, constants.customer) end
function M.item() return nurand(8191, 1, 100000, constants.item) end

-- The numbers from 1 to `count` in random order.
function M.permutation(count)
   local numbers = {}
   for i = 1, count do numbers[i] = i end
   for i = count, 2, -1 do
      local j = random(i)
      numbers[i], numbers[j] = numbers[j], numbers[i]
   end
   return numbers
end

-- The run's constants C: all terminals must have the same.
function M.choose_constants(seed)
   math.randomseed(seed)
   local distance
   repeat distance = random(NEAREST, FARTHEST) until not BARRED[distance]
   constants.last = LOADED_LAST + (random(2) == 1 and distance or -distance)
   constants.customer, constants.item = random(0, 1023), random(0, 8191)
end

return M

-- The initial population (clause 4.3.3.1).  Every piece of work seeds the generator for itself,
-- so that the rows are the same whatever number of threads loads them.

local random = require("tpcc.random")

local M = {}

local ITEMS, DISTRICTS, CUSTOMERS = 100000, 10, 3000
local DELIVERED = 2100 -- of a district's first orders: the others are new
local between, text, decimal = math.random, random.text, random.decimal

local function rows(connection, name, set, columns)
   connection:bulk_insert_init(("INSERT INTO %s%d%s VALUES"):format(name, set, columns or ""))
   return function(row) connection:bulk_insert_next(row) end,
      function() connection:bulk_insert_done() end
end

local function address()
   return ("'%s','%s','%s','%s','%s'"):format(
      text(10, 20), text(10, 20), text(10, 20), text(2, 2), random.zip())
end

local function items(connection, set)
   local add, done = rows(connection, "item", set)
   for i = 1, ITEMS do
      add(("(%d,%d,'%s',%s,'%s')"):format(
         i, between(1, 10000), text(14, 24), decimal(100, 10000, 2), random.data(26, 50)))
   end
   done()
end

local function warehouse(connection, set, w)
   connection:query(("INSERT INTO warehouse%d VALUES (%d,'%s',%s,%s,300000.00)"):format(
      set, w, text(6, 10), address(), decimal(0, 2000, 4)))
   local add, done = rows(connection, "district", set)
   for d = 1, DISTRICTS do
      add(("(%d,%d,'%s',%s,%s,30000.00,%d)"):format(
         d, w, text(6, 10), address(), decimal(0, 2000, 4), CUSTOMERS + 1))
   end
   done()
end

local function stock(connection, unit)
   warehouse(connection, unit.set, unit.w)
   local add, done = rows(connection, "stock", unit.set)
   local infos = {}
   for i = 1, ITEMS do
      for d = 1, DISTRICTS do infos[d] = text(24, 24) end
      add(("(%d,%d,%d,'%s',0,0,0,'%s')"):format(
         i, unit.w, between(10, 100), table.concat(infos, "','"), random.data(26, 50)))
   end
   done()
end

local CUSTOMER = "(%d,%d,%d,'%s','OE','%s',%s,'%s','%s','%s',50000.00,%s,-10.00,10.00,1,0,'%s')"

local function customers(connection, unit)
   local add, done = rows(connection, "customer", unit.set)
   for d = 1, DISTRICTS do
      for c = 1, CUSTOMERS do
         local name = c <= 1000 and c - 1 or random.name_number()
         add(CUSTOMER:format(
            c, d, unit.w, text(8, 16), random.last_name(name), address(), random.digits(16),
            unit.now, between(10) == 1 and "BC" or "GC", decimal(0, 5000, 4), text(300, 500)))
      end
   end
   done()
end

-- Columns are named: there may be a key of its own behind them.
local HISTORY = " (h_c_id,h_c_d_id,h_c_w_id,h_d_id,h_w_id,h_date,h_amount,h_data)"

local function history(connection, unit)
   local add, done = rows(connection, "history", unit.set, HISTORY)
   for d = 1, DISTRICTS do
      for c = 1, CUSTOMERS do
         add(("(%d,%d,%d,%d,%d,'%s',10.00,'%s')"):format(
            c, d, unit.w, d, unit.w, unit.now, text(12, 24)))
      end
   end
   done()
end

local function orders(connection, unit)
   local add, done = rows(connection, "orders", unit.set)
   for d = 1, DISTRICTS do
      local customer = random.permutation(CUSTOMERS)
      for o = 1, CUSTOMERS do
         local carrier = o <= DELIVERED and between(1, 10) or "NULL"
         add(("(%d,%d,%d,%d,'%s',%s,%d,1)"):format(
            o, d, unit.w, customer[o], unit.now, carrier, unit.lines[d][o]))
      end
   end
   done()
end

local function new_orders(connection, unit)
   local add, done = rows(connection, "new_order", unit.set)
   for d = 1, DISTRICTS do
      for o = DELIVERED + 1, CUSTOMERS do add(("(%d,%d,%d)"):format(o, d, unit.w)) end
   end
   done()
end

local function order_lines(connection, unit)
   local add, done = rows(connection, "order_line", unit.set)
   local day = "'" .. unit.now .. "'"
   for d = 1, DISTRICTS do
      for o = 1, CUSTOMERS do
         local delivered = o <= DELIVERED
         for number = 1, unit.lines[d][o] do
            add(("(%d,%d,%d,%d,%d,%d,%s,5,%s,'%s')"):format(
               o, d, unit.w, number, between(1, ITEMS), unit.w, delivered and day or "NULL",
               delivered and "0.00" or decimal(1, 999999, 2), text(24, 24)))
         end
      end
   end
   done()
end

-- The pieces of a warehouse: about equal, so that few warehouses keep several threads busy too.
local PIECES = {
   {stock},
   {customers, history, orders, new_orders},
   {order_lines},
}

local function seed(set, w, piece) math.randomseed((set * 2 ^ 20 + w) * 4 + piece) end

-- How many lines each order has: drawn alike for both tables that hold it.
local function line_counts(set, w)
   seed(set, w, 0)
   local counts = {}
   for d = 1, DISTRICTS do
      counts[d] = {}
      for o = 1, CUSTOMERS do counts[d][o] = between(5, 15) end
   end
   return counts
end

local function load_warehouse(connection, unit, mine)
   for number, piece in ipairs(PIECES) do
      if mine() then
         unit.lines = line_counts(unit.set, unit.w)
         seed(unit.set, unit.w, number)
         for _, fill in ipairs(piece) do fill(connection, unit) end
      end
   end
end

function M.load()
   local connection = sysbench.sql.driver():connect()
   connection:query("SET SESSION foreign_key_checks = 0")
   local opt, turn = sysbench.opt, 0
   local now = os.date("!%Y-%m-%d %H:%M:%S")
   local function mine()
      turn = turn + 1
      return turn % opt.threads == sysbench.tid % opt.threads
   end
   for set = 1, opt.tables do
      if mine() then
         seed(set, 0, 0)
         items(connection, set)
      end
      for w = 1, opt.scale do
         load_warehouse(connection, {set = set, w = w, now = now}, mine)
      end
   end
end

return M

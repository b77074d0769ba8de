-- The five transactions (clause 2): for each kind one function that draws its input and one that
-- runs it, so that a transaction that met a deadlock is tried again with the same input.

local random = require("tpcc.random")

local M = {}

local between = math.random
local UNUSED_ITEM = 100001

-- Another warehouse of the same set, where there is one.
local function remote(w)
   local others = sysbench.opt.scale - 1
   if others == 0 then return w end
   local drawn = between(others)
   return drawn < w and drawn or drawn + 1
end

-- Clause 2.5.1.2: by last name in 60 of 100.
local function customer()
   if between(100) <= 60 then return {last = random.last_name(random.name_number())} end
   return {id = random.customer()}
end

local function draw_line(w, last_of_bad)
   return {
      item = last_of_bad and UNUSED_ITEM or random.item(),
      supply = between(100) == 1 and remote(w) or w,
      quantity = between(10),
   }
end

local function draw_new_order(home)
   local input = {set = home.set, w = home.w, d = between(10), c = random.customer(), lines = {}}
   local count, bad = between(5, 15), between(100) == 1 -- clause 2.4.1.4
   input.all_local = 1
   for number = 1, count do
      local line = draw_line(home.w, bad and number == count)
      if line.supply ~= home.w then input.all_local = 0 end
      input.lines[number] = line
   end
   return input
end

-- Returns whether the item exists: an unused one rolls the entire order back.
local function new_order_line(con, input, order, number)
   local set, line = input.set, input.lines[number]
   local price = con:query_row(("SELECT i_price, i_name, i_data FROM item%d WHERE i_id = %d")
      :format(set, line.item))
   if not price then return false end
   local left, info = con:query_row((
      "SELECT s_quantity, s_dist_%02d, s_data FROM stock%d WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE")
      :format(input.d, set, line.supply, line.item))
   left = tonumber(left) - line.quantity
   if left < 10 then left = left + 91 end
   con:query((
      "UPDATE stock%d SET s_quantity = %d, s_ytd = s_ytd + %d, s_order_cnt = s_order_cnt + 1, "
      .. "s_remote_cnt = s_remote_cnt + %d WHERE s_w_id = %d AND s_i_id = %d"):format(
      set, left, line.quantity, line.supply == input.w and 0 or 1, line.supply, line.item))
   con:query(("INSERT INTO order_line%d VALUES (%d,%d,%d,%d,%d,%d,NULL,%d,%.2f,'%s')"):format(
      set, order, input.d, input.w, number, line.item, line.supply, line.quantity,
      line.quantity * tonumber(price), info))
   return true
end

local function new_order(con, input)
   local set, w, d = input.set, input.w, input.d
   con:query("BEGIN")
   con:query_row((
      "SELECT c_discount, c_last, c_credit, w_tax FROM customer%d, warehouse%d "
      .. "WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d"):format(
      set, set, w, d, input.c))
   local order = tonumber((con:query_row((
      "SELECT d_next_o_id, d_tax FROM district%d WHERE d_w_id = %d AND d_id = %d FOR UPDATE")
      :format(set, w, d))))
   con:query(("UPDATE district%d SET d_next_o_id = %d WHERE d_w_id = %d AND d_id = %d"):format(
      set, order + 1, w, d))
   con:query(("INSERT INTO orders%d VALUES (%d,%d,%d,%d,NOW(),NULL,%d,%d)"):format(
      set, order, d, w, input.c, #input.lines, input.all_local))
   con:query(("INSERT INTO new_order%d VALUES (%d,%d,%d)"):format(set, order, d, w))
   for number = 1, #input.lines do
      if not new_order_line(con, input, order, number) then
         con:query("ROLLBACK")
         return
      end
   end
   con:query("COMMIT")
end

-- Customers of one last name in the order of their first names: the one in the middle counts.
local function middle(con, set, w, d, last)
   local result = con:query((
      "SELECT c_id FROM customer%d WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' "
      .. "ORDER BY c_first"):format(set, w, d, last))
   local id
   for _ = 1, math.ceil(result.nrows / 2) do id = tonumber(result:fetch_row()[1]) end
   return id
end

local function customer_id(con, set, w, d, who) return who.id or middle(con, set, w, d, who.last) end

local function draw_payment(home)
   local input = {set = home.set, w = home.w, d = between(10), who = customer()}
   input.c_w, input.c_d = home.w, input.d
   if between(100) > 85 then input.c_w, input.c_d = remote(home.w), between(10) end
   input.amount = random.decimal(100, 500000, 2)
   return input
end

local ADDRESS = "$_name, $_street_1, $_street_2, $_city, $_state, $_zip"

-- Adds the amount to a warehouse's or a district's total and returns its name.
local function paid_to(con, prefix, place, amount)
   con:query(("UPDATE %s SET %s_ytd = %s_ytd + %s WHERE %s"):format(
      place.table, prefix, prefix, amount, place.where))
   return (con:query_row(("SELECT %s FROM %s WHERE %s"):format(
      ADDRESS:gsub("%$", prefix), place.table, place.where)))
end

local CUSTOMER = "c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, "
   .. "c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_since"

-- A customer with bad credit has the payment written in front of what is known of him.
local function paid_by(con, input, c)
   local where = ("c_w_id = %d AND c_d_id = %d AND c_id = %d"):format(input.c_w, input.c_d, c)
   local row = {con:query_row(("SELECT %s FROM customer%d WHERE %s FOR UPDATE"):format(
      CUSTOMER, input.set, where))}
   local data = ""
   if row[10] == "BC" then
      data = (", c_data = LEFT(CONCAT('%d %d %d %d %d %s|', c_data), 500)"):format(
         c, input.c_d, input.c_w, input.d, input.w, input.amount)
   end
   con:query((
      "UPDATE customer%d SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, "
      .. "c_payment_cnt = c_payment_cnt + 1%s WHERE %s"):format(
      input.set, input.amount, input.amount, data, where))
end

local HISTORY = "INSERT INTO history%d (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, "
   .. "h_amount, h_data) VALUES (%d,%d,%d,%d,%d,NOW(),%s,'%s    %s')"

local function payment(con, input)
   local set, w, d = input.set, input.w, input.d
   con:query("BEGIN")
   local warehouse = paid_to(con, "w", {
      table = "warehouse" .. set, where = "w_id = " .. w}, input.amount)
   local district = paid_to(con, "d", {
      table = "district" .. set, where = ("d_w_id = %d AND d_id = %d"):format(w, d)}, input.amount)
   local c = customer_id(con, set, input.c_w, input.c_d, input.who)
   paid_by(con, input, c)
   con:query(HISTORY:format(
      set, c, input.c_d, input.c_w, d, w, input.amount, warehouse, district))
   con:query("COMMIT")
end

local function draw_order_status(home)
   return {set = home.set, w = home.w, d = between(10), who = customer()}
end

local function order_status(con, input)
   local set, w, d = input.set, input.w, input.d
   con:query("BEGIN")
   local c = customer_id(con, set, w, d, input.who)
   con:query_row((
      "SELECT c_balance, c_first, c_middle, c_last FROM customer%d "
      .. "WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d"):format(set, w, d, c))
   local order = con:query_row((
      "SELECT o_id, o_entry_d, o_carrier_id FROM orders%d "
      .. "WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1"):format(
      set, w, d, c))
   con:query((
      "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line%d "
      .. "WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s"):format(set, w, d, order))
   con:query("COMMIT")
end

local function draw_delivery(home)
   return {set = home.set, w = home.w, carrier = between(10)}
end

-- A district's oldest new order, if it has one.
local function deliver(con, input, d)
   local set, w = input.set, input.w
   local order = con:query_row((
      "SELECT no_o_id FROM new_order%d WHERE no_w_id = %d AND no_d_id = %d "
      .. "ORDER BY no_o_id LIMIT 1 FOR UPDATE"):format(set, w, d))
   if not order then return end
   con:query(("DELETE FROM new_order%d WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = %s")
      :format(set, w, d, order))
   local order_row = ("o_w_id = %d AND o_d_id = %d AND o_id = %s"):format(w, d, order)
   local c = con:query_row(("SELECT o_c_id FROM orders%d WHERE %s FOR UPDATE"):format(set, order_row))
   con:query(("UPDATE orders%d SET o_carrier_id = %d WHERE %s"):format(set, input.carrier, order_row))
   local lines = ("ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s"):format(w, d, order)
   con:query(("UPDATE order_line%d SET ol_delivery_d = NOW() WHERE %s"):format(set, lines))
   local total = con:query_row(("SELECT SUM(ol_amount) FROM order_line%d WHERE %s"):format(
      set, lines))
   con:query((
      "UPDATE customer%d SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 "
      .. "WHERE c_w_id = %d AND c_d_id = %d AND c_id = %s"):format(set, total, w, d, c))
end

local function delivery(con, input)
   con:query("BEGIN")
   for d = 1, 10 do deliver(con, input, d) end
   con:query("COMMIT")
end

local function draw_stock_level(home)
   return {set = home.set, w = home.w, d = home.d or between(10), threshold = between(10, 20)}
end

local function stock_level(con, input)
   local set, w, d = input.set, input.w, input.d
   con:query("BEGIN")
   local following = tonumber((con:query_row((
      "SELECT d_next_o_id FROM district%d WHERE d_w_id = %d AND d_id = %d"):format(set, w, d))))
   con:query_row((
      "SELECT COUNT(DISTINCT s_i_id) FROM order_line%d, stock%d "
      .. "WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d AND ol_o_id >= %d "
      .. "AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < %d"):format(
      set, set, w, d, following, following - 20, w, input.threshold))
   con:query("COMMIT")
end

-- In the order of counts.kinds.  `share`: cards in a deck of a hundred; `key_s`, `think_s`: the
-- least keying time and the mean thinking time (clause 5.2.5.7).
M.kinds = {
   {draw = draw_new_order, run = new_order, share = 45, key_s = 18, think_s = 12},
   {draw = draw_payment, run = payment, share = 43, key_s = 3, think_s = 12},
   {draw = draw_order_status, run = order_status, share = 4, key_s = 2, think_s = 10},
   {draw = draw_delivery, run = delivery, share = 4, key_s = 2, think_s = 5},
   {draw = draw_stock_level, run = stock_level, share = 4, key_s = 2, think_s = 5},
}

return M

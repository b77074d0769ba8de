-- The twelve consistency conditions (clause 3.3.2), each as one statement that finds a row which
-- violates it.  One statement sees one moment, so that they hold while a load runs too.

local M = {}

local STEP = 10 -- warehouses a statement: what it groups stays small, and threads share the work
local DELIVERED = 2100 -- of a district's first orders

-- {s}: the set; {in}: which warehouses.  The first columns give the place; then follows what ought to
-- be equal, or to be there together.
local CONDITIONS = {
   {"warehouse, w_ytd, sum(d_ytd)", [[
      SELECT w_id, w_ytd, d.total FROM warehouse{s} LEFT JOIN (
         SELECT d_w_id, SUM(d_ytd) AS total FROM district{s} WHERE d_w_id {in} GROUP BY d_w_id
      ) AS d ON d_w_id = w_id
      WHERE w_id {in} AND NOT (w_ytd <=> d.total)]]},
   {"warehouse, district, d_next_o_id - 1, max(o_id), max(no_o_id)", [[
      SELECT d_w_id, d_id, d_next_o_id - 1, o.top, n.top FROM district{s} LEFT JOIN (
         SELECT o_w_id, o_d_id, MAX(o_id) AS top FROM orders{s} WHERE o_w_id {in}
         GROUP BY o_w_id, o_d_id
      ) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (
         SELECT no_w_id, no_d_id, MAX(no_o_id) AS top FROM new_order{s} WHERE no_w_id {in}
         GROUP BY no_w_id, no_d_id
      ) AS n ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE d_w_id {in} AND (NOT (d_next_o_id - 1 <=> o.top) OR d_next_o_id - 1 <> n.top)]]},
   {"warehouse, district, max(no_o_id) - min(no_o_id) + 1, count(new_order)", [[
      SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS number
      FROM new_order{s} WHERE no_w_id {in}
      GROUP BY no_w_id, no_d_id HAVING span <> number]]},
   {"warehouse, district, sum(o_ol_cnt), count(order_line)", [[
      SELECT d_w_id, d_id, o.total, l.number FROM district{s} LEFT JOIN (
         SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS total FROM orders{s} WHERE o_w_id {in}
         GROUP BY o_w_id, o_d_id
      ) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (
         SELECT ol_w_id, ol_d_id, COUNT(*) AS number FROM order_line{s} WHERE ol_w_id {in}
         GROUP BY ol_w_id, ol_d_id
      ) AS l ON ol_w_id = d_w_id AND ol_d_id = d_id
      WHERE d_w_id {in} AND NOT (o.total <=> l.number)]]},
   {"warehouse, district, order, o_carrier_id, no_o_id", [[
      SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders{s} LEFT JOIN new_order{s}
      ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
      WHERE o_w_id {in} AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)]]},
   {"warehouse, district, order, o_ol_cnt, count(order_line)", [[
      SELECT o_w_id, o_d_id, o_id, o_ol_cnt, l.number FROM orders{s} LEFT JOIN (
         SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS number FROM order_line{s}
         WHERE ol_w_id {in} GROUP BY ol_w_id, ol_d_id, ol_o_id
      ) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE o_w_id {in} AND NOT (o_ol_cnt <=> l.number)]]},
   {"warehouse, district, order, line, ol_delivery_d, o_carrier_id", [[
      SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id
      FROM orders{s} JOIN order_line{s}
      ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE o_w_id {in} AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)]]},
   {"warehouse, w_ytd, sum(h_amount)", [[
      SELECT w_id, w_ytd, h.total FROM warehouse{s} LEFT JOIN (
         SELECT h_w_id, SUM(h_amount) AS total FROM history{s} WHERE h_w_id {in} GROUP BY h_w_id
      ) AS h ON h_w_id = w_id
      WHERE w_id {in} AND NOT (w_ytd <=> h.total)]]},
   {"warehouse, district, d_ytd, sum(h_amount)", [[
      SELECT d_w_id, d_id, d_ytd, h.total FROM district{s} LEFT JOIN (
         SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history{s} WHERE h_w_id {in}
         GROUP BY h_w_id, h_d_id
      ) AS h ON h_w_id = d_w_id AND h_d_id = d_id
      WHERE d_w_id {in} AND NOT (d_ytd <=> h.total)]]},
   {"warehouse, district, customer, c_balance, sum(delivered ol_amount) - sum(h_amount)", [[
      SELECT c_w_id, c_d_id, c_id, c_balance, COALESCE(l.total, 0) - COALESCE(h.total, 0)
      FROM customer{s} LEFT JOIN ({delivered}) AS l
      ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id LEFT JOIN (
         SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS total FROM history{s}
         WHERE h_c_w_id {in} GROUP BY h_c_w_id, h_c_d_id, h_c_id
      ) AS h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
      WHERE c_w_id {in} AND c_balance <> COALESCE(l.total, 0) - COALESCE(h.total, 0)]]},
   -- the specification states it for the initial population; each delivery since takes one away
   {"warehouse, district, count(orders) - count(new_order), 2100 + sum(c_delivery_cnt)", [[
      SELECT d_w_id, d_id, o.number - COALESCE(n.number, 0), {first} + c.number
      FROM district{s} LEFT JOIN (
         SELECT o_w_id, o_d_id, COUNT(*) AS number FROM orders{s} WHERE o_w_id {in}
         GROUP BY o_w_id, o_d_id
      ) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (
         SELECT no_w_id, no_d_id, COUNT(*) AS number FROM new_order{s} WHERE no_w_id {in}
         GROUP BY no_w_id, no_d_id
      ) AS n ON no_w_id = d_w_id AND no_d_id = d_id LEFT JOIN (
         SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS number FROM customer{s} WHERE c_w_id {in}
         GROUP BY c_w_id, c_d_id
      ) AS c ON c_w_id = d_w_id AND c_d_id = d_id
      WHERE d_w_id {in} AND NOT (o.number - COALESCE(n.number, 0) <=> {first} + c.number)]]},
   {"warehouse, district, customer, c_balance + c_ytd_payment, sum(delivered ol_amount)", [[
      SELECT c_w_id, c_d_id, c_id, c_balance + c_ytd_payment, COALESCE(l.total, 0)
      FROM customer{s} LEFT JOIN ({delivered}) AS l
      ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      WHERE c_w_id {in} AND c_balance + c_ytd_payment <> COALESCE(l.total, 0)]]},
}

-- What each customer's delivered orders came to.
local PARTS = {
   first = DELIVERED,
   delivered = [[
      SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS total FROM orders{s} JOIN order_line{s}
      ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE o_w_id {in} AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id]],
}

local function statement(text, set, first, last)
   local places = {s = set, ["in"] = ("BETWEEN %d AND %d"):format(first, last)}
   local query = text:gsub("{(%a+)}", PARTS)
   return query:gsub("{(%a+)}", places) .. " LIMIT 1"
end

local function violation(number, set, labels, row)
   local parts, column = {}, 0
   for label in labels:gmatch("[^,]+") do
      column = column + 1
      parts[column] = ("%s = %s"):format(label:match("^%s*(.-)%s*$"), row[column] or "NULL")
   end
   return ("TPC-C consistency condition %d (clause 3.3.2.%d) is violated in set %d: %s"):format(
      number, number, set, table.concat(parts, ", "))
end

-- The warehouses to look at, as pieces of sets: {set, first, last}.
local function pieces()
   local opt, found = sysbench.opt, {}
   local all = opt.tables * opt.scale
   local count = opt.warehouses == 0 and all or math.min(opt.warehouses, all)
   local at = opt.first_warehouse - 1
   while count > 0 do
      local set, w = math.floor(at / opt.scale) % opt.tables + 1, at % opt.scale + 1
      local length = math.min(STEP, count, opt.scale - w + 1)
      found[#found + 1] = {set, w, w + length - 1}
      at, count = at + length, count - length
   end
   return found
end

-- Ends sysbench with the words of the first violation on its standard error.
function M.check()
   local connection = sysbench.sql.driver():connect()
   local opt, turn = sysbench.opt, 0
   for _, piece in ipairs(pieces()) do
      for number, condition in ipairs(CONDITIONS) do
         turn = turn + 1
         if turn % opt.threads == sysbench.tid % opt.threads then
            local row = {connection:query_row(statement(condition[2], unpack(piece)))}
            if next(row) then
               io.stderr:write(violation(number, piece[1], condition[1], row) .. "\n")
               os.exit(1)
            end
         end
      end
   end
end

return M

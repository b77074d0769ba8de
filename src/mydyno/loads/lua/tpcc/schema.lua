-- The nine tables (clause 1.3), their indexes and foreign keys.  Counters that hot rows would
-- drive past the digits asked for are integers.

local M = {}

local ADDRESS = [[
$_street_1 varchar(20) NOT NULL, $_street_2 varchar(20) NOT NULL, $_city varchar(20) NOT NULL,
$_state char(2) NOT NULL, $_zip char(9) NOT NULL]]

local function address(prefix) return (ADDRESS:gsub("%$", prefix)) end

local function districts()
   local columns = {}
   for i = 1, 10 do columns[i] = ("s_dist_%02d char(24) NOT NULL"):format(i) end
   return table.concat(columns, ", ")
end

-- Parents before their children.
local TABLES = {
   {"warehouse", [[
      w_id int NOT NULL, w_name varchar(10) NOT NULL, ]] .. address("w") .. [[,
      w_tax decimal(4,4) NOT NULL, w_ytd decimal(12,2) NOT NULL,
      PRIMARY KEY (w_id)]]},
   {"district", [[
      d_id tinyint NOT NULL, d_w_id int NOT NULL, d_name varchar(10) NOT NULL, ]]
      .. address("d") .. [[,
      d_tax decimal(4,4) NOT NULL, d_ytd decimal(12,2) NOT NULL, d_next_o_id int NOT NULL,
      PRIMARY KEY (d_w_id, d_id)]]},
   {"customer", [[
      c_id int NOT NULL, c_d_id tinyint NOT NULL, c_w_id int NOT NULL,
      c_first varchar(16) NOT NULL, c_middle char(2) NOT NULL, c_last varchar(16) NOT NULL, ]]
      .. address("c") .. [[,
      c_phone char(16) NOT NULL, c_since datetime NOT NULL, c_credit char(2) NOT NULL,
      c_credit_lim decimal(12,2) NOT NULL, c_discount decimal(4,4) NOT NULL,
      c_balance decimal(12,2) NOT NULL, c_ytd_payment decimal(12,2) NOT NULL,
      c_payment_cnt int NOT NULL, c_delivery_cnt int NOT NULL, c_data varchar(500) NOT NULL,
      PRIMARY KEY (c_w_id, c_d_id, c_id)]]},
   {"history", [[
      h_c_id int NOT NULL, h_c_d_id tinyint NOT NULL, h_c_w_id int NOT NULL,
      h_d_id tinyint NOT NULL, h_w_id int NOT NULL, h_date datetime NOT NULL,
      h_amount decimal(6,2) NOT NULL, h_data varchar(24) NOT NULL]]},
   {"orders", [[
      o_id int NOT NULL, o_d_id tinyint NOT NULL, o_w_id int NOT NULL, o_c_id int NOT NULL,
      o_entry_d datetime NOT NULL, o_carrier_id tinyint NULL, o_ol_cnt tinyint NOT NULL,
      o_all_local tinyint NOT NULL,
      PRIMARY KEY (o_w_id, o_d_id, o_id)]]},
   {"new_order", [[
      no_o_id int NOT NULL, no_d_id tinyint NOT NULL, no_w_id int NOT NULL,
      PRIMARY KEY (no_w_id, no_d_id, no_o_id)]]},
   {"item", [[
      i_id int NOT NULL, i_im_id int NOT NULL, i_name varchar(24) NOT NULL,
      i_price decimal(5,2) NOT NULL, i_data varchar(50) NOT NULL,
      PRIMARY KEY (i_id)]]},
   {"stock", [[
      s_i_id int NOT NULL, s_w_id int NOT NULL, s_quantity smallint NOT NULL, ]]
      .. districts() .. [[,
      s_ytd int NOT NULL, s_order_cnt int NOT NULL, s_remote_cnt int NOT NULL,
      s_data varchar(50) NOT NULL,
      PRIMARY KEY (s_w_id, s_i_id)]]},
   {"order_line", [[
      ol_o_id int NOT NULL, ol_d_id tinyint NOT NULL, ol_w_id int NOT NULL,
      ol_number tinyint NOT NULL, ol_i_id int NOT NULL, ol_supply_w_id int NOT NULL,
      ol_delivery_d datetime NULL, ol_quantity tinyint NOT NULL, ol_amount decimal(6,2) NOT NULL,
      ol_dist_info char(24) NOT NULL,
      PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]]},
}

-- What the transactions look for by other than the primary key.
local INDEXES = {
   customer = "ADD KEY customer_name (c_w_id, c_d_id, c_last, c_first)",
   orders = "ADD KEY order_customer (o_w_id, o_d_id, o_c_id, o_id)",
}

local FOREIGN_KEYS = {
   district = {{"d_w_id", "warehouse", "w_id"}},
   customer = {{"c_w_id, c_d_id", "district", "d_w_id, d_id"}},
   history = {
      {"h_c_w_id, h_c_d_id, h_c_id", "customer", "c_w_id, c_d_id, c_id"},
      {"h_w_id, h_d_id", "district", "d_w_id, d_id"},
   },
   orders = {{"o_w_id, o_d_id, o_c_id", "customer", "c_w_id, c_d_id, c_id"}},
   new_order = {{"no_w_id, no_d_id, no_o_id", "orders", "o_w_id, o_d_id, o_id"}},
   stock = {{"s_w_id", "warehouse", "w_id"}, {"s_i_id", "item", "i_id"}},
   order_line = {
      {"ol_w_id, ol_d_id, ol_o_id", "orders", "o_w_id, o_d_id, o_id"},
      {"ol_supply_w_id, ol_i_id", "stock", "s_w_id, s_i_id"},
   },
}

local function connected()
   local connection = sysbench.sql.driver():connect()
   connection:query("SET SESSION foreign_key_checks = 0")
   return connection
end

function M.cleanup()
   local connection = connected()
   for set = 1, sysbench.opt.tables do
      for _, each in ipairs(TABLES) do
         connection:query("DROP TABLE IF EXISTS " .. each[1] .. set)
      end
   end
end

local function columns(name, text)
   if name ~= "history" or not sysbench.opt.history_key then return text end
   return text .. ", h_id bigint NOT NULL AUTO_INCREMENT, PRIMARY KEY (h_id)"
end

-- One character set whatever the server's default is, so that servers store the same bytes.
function M.create()
   local connection = connected()
   local opt = sysbench.opt
   for set = 1, opt.tables do
      for _, each in ipairs(TABLES) do
         connection:query(("CREATE TABLE %s%d (%s) ENGINE=%s DEFAULT CHARSET=latin1 %s"):format(
            each[1], set, columns(each[1], each[2]), opt.mysql_storage_engine,
            opt.create_table_options))
      end
   end
end

local function foreign_keys(name, set)
   local parts = {}
   for i, key in ipairs(FOREIGN_KEYS[name] or {}) do
      parts[i] = ("ADD CONSTRAINT %s%d_fk%d FOREIGN KEY (%s) REFERENCES %s%d (%s)"):format(
         name, set, i, key[1], key[2], set, key[3])
   end
   return parts
end

-- Indexes and keys in one pass over each table, then its statistics, so that every copy of the
-- data set starts from the same ones.
function M.finish()
   local connection = connected()
   local opt, turn = sysbench.opt, 0
   for set = 1, opt.tables do
      for _, each in ipairs(TABLES) do
         local name = each[1]
         turn = turn + 1
         if turn % opt.threads == sysbench.tid % opt.threads then
            local parts = opt.foreign_keys and foreign_keys(name, set) or {}
            parts[#parts + 1] = INDEXES[name]
            if #parts > 0 then
               connection:query(("ALTER TABLE %s%d %s"):format(name, set, table.concat(parts, ", ")))
            end
            connection:query("ANALYZE LOCAL TABLE " .. name .. set)
         end
      end
   end
end

return M

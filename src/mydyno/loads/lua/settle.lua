-- Refreshes the statistics of the tables sbtest1 to sbtestN, so that every copy of a data set
-- starts from the same ones instead of having them recounted in the measured window.

local function settle()
   local connection = sysbench.sql.driver():connect()
   for i = 1, sysbench.opt.tables do
      connection:query("ANALYZE LOCAL TABLE sbtest" .. i)
   end
end

sysbench.cmdline.options = {tables = {"Number of tables", 1}}
sysbench.cmdline.commands = {settle = {settle}}

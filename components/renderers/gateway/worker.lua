-- A worker that starts.
local counts = require "berth.counts"
local health = require "berth.health"
local routes = require "berth.routes"

local M = {}

-- What a worker holds is about 2 MiB. Lua's default is to look all of it through for what is no
-- longer needed whenever as much again has been used, which is every few hundred requests.
local GROWTH_PERCENT = 1000

function M.start()
  collectgarbage("setpause", GROWTH_PERCENT)
  math.randomseed(ngx.worker.pid())
  local names = {}
  for _, replica in ipairs(routes.replicas()) do table.insert(names, replica.id) end
  for _, demo in pairs(routes.now().demos) do
    for _, role in pairs(demo.roles) do table.insert(names, role.count) end
  end
  for _, key in ipairs(routes.now().keys) do table.insert(names, key.count) end
  counts.take_back(names)
  routes.watch()
  health.start(routes.replicas)
end

return M

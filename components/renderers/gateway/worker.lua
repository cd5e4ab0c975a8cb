-- A worker that starts.
local counts = require "berth.counts"
local health = require "berth.health"
local routes = require "berth.routes"

local M = {}

function M.start()
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

-- Which replica a request goes to: the well one with the fewest requests under way.
local balancer = require "ngx.balancer"
local counts = require "berth.counts"
local health = require "berth.health"
local routes = require "berth.routes"

local M = {}

-- The replica to use, or nil, why there is none, and whether one was closed on purpose. `tried` holds the ids of those that failed.
function M.pick(endpoint, tried)
  local best, fewest, why, closed
  local first = math.random(#endpoint.replicas)
  for i = 0, #endpoint.replicas - 1 do
    local replica = endpoint.replicas[(first + i - 1) % #endpoint.replicas + 1]
    local trouble = replica.closed or health.trouble(replica)
    why, closed = why or trouble, closed or replica.closed
    if not trouble and not tried[replica.id] then
      local under_way = counts.of(replica.id)
      if not fewest or under_way < fewest then best, fewest = replica, under_way end
    end
  end
  return best, closed or why or "its engine cannot be reached", closed ~= nil
end

-- A replica that answers 503 does so at once, so it has the fewest under way: all requests would go
-- there until its check fails. Where another is well, those after this one go to that.
function M.refused(endpoint, id)
  for _, replica in ipairs(endpoint.replicas) do
    if replica.id ~= id and not replica.closed and not health.trouble(replica) then
      return health.refused(id)
    end
  end
end

local function move(ctx, replica)
  if ctx.counted then counts.give(ctx.counted) end
  counts.take(replica.id)
  ctx.counted = replica.id
  ngx.var.berth_replica = replica.address
  ngx.var.berth_replica_id = replica.id
end

-- Only a connection that failed is tried elsewhere: nginx never sends a POST twice.
function M.run()
  local ctx = ngx.ctx
  local tried = ctx.tried
  if tried then
    tried[ngx.var.berth_replica_id] = true
    if balancer.get_last_failure() then health.could_not_connect(ngx.var.berth_replica_id) end
  else
    tried = {}
    ctx.tried = tried
    if #ctx.endpoint.replicas > 1 then balancer.set_more_tries(#ctx.endpoint.replicas - 1) end
  end
  -- Where the body names the replica's own model, it goes to that one or to none.
  local replica = ctx.fixed
  if replica and tried[replica.id] then replica = nil
  elseif not replica then replica = M.pick(ctx.endpoint, tried) end
  if not replica then return ngx.exit(502) end
  move(ctx, replica)
  local limits = routes.limits
  local quiet_s = ctx.stream and limits.silence_s or limits.timeout_s
  balancer.set_timeouts(limits.connect_s, limits.connect_s * 5, quiet_s)
  local ok, why = balancer.set_current_peer("127.0.0.1", replica.port)
  if not ok then
    ngx.log(ngx.ERR, "no connection to ", replica.id, ": ", why)
    return ngx.exit(502)
  end
end

return M

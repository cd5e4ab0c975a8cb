-- `GET /v1/models`: the roles that a key may use, whether they are served now, and by what.
local cjson = require "cjson.safe"
local balance = require "berth.balance"
local refuse = require "berth.refuse"
local routes = require "berth.routes"

local M = {}

-- Why a role is not served now, or nil.
function M.trouble(role)
  if role.state ~= "serving" then
    return role.reason ~= "" and role.reason or "its model is not loaded"
  end
  local well, why = balance.pick(role.openai, {})
  return not well and why or nil
end

local function shown(role)
  local why = M.trouble(role)
  return '{"id":' .. role.quoted .. ',"object":"model","created":' .. routes.now().loaded
    .. ',"owned_by":' .. cjson.encode(role.demo)
    .. ',"berth":{"model":' .. cjson.encode(role.model)
    .. ',"engine":' .. cjson.encode(role.engine)
    .. ',"serving":' .. tostring(why == nil)
    .. ',"reason":' .. cjson.encode(why or cjson.null)
    .. ',"fallback":' .. cjson.encode(role.fallback or cjson.null) .. "}}"
end

function M.one(role)
  ngx.var.berth_role, ngx.var.berth_engine = role.name, role.engine
  refuse.print(200, shown(role))
  return ngx.exit(ngx.HTTP_OK)
end

function M.list(demo)
  local found = {}
  for i, name in ipairs(demo.names) do found[i] = shown(demo.roles[name]) end
  refuse.print(200, '{"object":"list","data":[' .. table.concat(found, ",") .. "]}")
  return ngx.exit(ngx.HTTP_OK)
end

return M

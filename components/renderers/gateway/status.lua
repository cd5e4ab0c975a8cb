-- What the gateway holds, for those on the host: which routes, which replicas get traffic and why
-- others do not, how many requests are under way, which files were left out.
local cjson = require "cjson.safe"
local counts = require "berth.counts"
local health = require "berth.health"
local models = require "berth.models"
local refuse = require "berth.refuse"
local routes = require "berth.routes"

local M = {}

-- An empty table would be encoded as an object.
local function list(values)
  local found = {}
  for i, value in ipairs(values) do found[i] = cjson.encode(value) end
  return "[" .. table.concat(found, ",") .. "]"
end

local function map(values)
  local names, found = {}, {}
  for name in pairs(values) do table.insert(names, name) end
  table.sort(names)
  for i, name in ipairs(names) do found[i] = cjson.encode(name) .. ":" .. values[name] end
  return "{" .. table.concat(found, ",") .. "}"
end

local function replicas_of(role)
  local found = {}
  for _, kind in ipairs { "openai", "framing", "kserve" } do
    for _, replica in ipairs(role[kind] and role[kind].replicas or {}) do
      table.insert(found, {
        api = kind, id = replica.id, address = replica.address, unit = replica.unit,
        trouble = replica.closed or health.trouble(replica) or cjson.null,
        closed = replica.closed ~= nil, requests = counts.of(replica.id),
      })
    end
  end
  return list(found)
end

function M.print()
  local now = routes.now()
  local demos, requests = {}, {}
  for name, demo in pairs(now.demos) do
    local roles = {}
    for each, role in pairs(demo.roles) do
      roles[each] = map {
        model = cjson.encode(role.model), engine = cjson.encode(role.engine),
        state = cjson.encode(role.state), fallback = cjson.encode(role.fallback or cjson.null),
        trouble = cjson.encode(models.trouble(role) or cjson.null), replicas = replicas_of(role),
        requests = counts.of(role.count),
      }
    end
    demos[name] = map(roles)
  end
  for _, key in ipairs(now.keys) do
    requests[key.demo.name .. "/" .. key.name] = counts.of(key.count)
  end
  refuse.print(200, map {
    revision = cjson.encode(now.revision), configuration = cjson.encode(routes.configuration),
    generation = counts.generation, demos = map(demos), requests = map(requests),
    under_way = map(counts.of_replicas()), left_out = list(now.left_out),
  })
end

-- Whether a demo's file could be installed: the body is JSON with its name, `file`, and its text,
-- `routes`. 200, or 400 with the reason as text.
function M.check()
  ngx.req.read_body()
  local asked = cjson.decode(ngx.req.get_body_data() or "")
  local why = type(asked) ~= "table" and "the request is not JSON" or routes.trouble(asked)
  refuse.print(why and 400 or 200, why or "", "text/plain")
end

return M

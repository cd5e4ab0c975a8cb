-- Every request comes through here: whose it is, which role it means, and whether that is served.
--
-- A path is compared as the client spelt it, byte for byte, with the few that exist; what is sent
-- to an engine is made from those alone. So no encoded, doubled or dotted spelling means anything,
-- and nothing that a client writes becomes part of an engine's path or headers.
local cjson = require "cjson.safe"
local answer = require "berth.answer"
local balance = require "berth.balance"
local counts = require "berth.counts"
local json_members = require "berth.json_members"
local keys = require "berth.keys"
local models = require "berth.models"
local refuse = require "berth.refuse"
local routes = require "berth.routes"
local sampling = require "berth.sampling"

-- Python's JSON knows NaN, Lua's knows hexadecimal numbers: only what all agree on is let through.
cjson.decode_invalid_numbers(false)

local M = {}

-- What a body decodes to is much larger than its text where it has many small values: of 31 MiB of
-- empty lists a worker made 900 MiB, and stood still meanwhile. A prompt of a million tokens passes.
local MOST_VALUES = 1000000
-- Bytes; a body of fewer cannot have so many values. What it leaves behind is collected at its end.
local LARGE = MOST_VALUES

-- Path → which of a role's endpoints serves it.
local BY_MODEL = {
  ["/v1/chat/completions"] = "openai",
  ["/v1/completions"] = "openai",
  ["/v1/stream"] = "framing",
}
-- What may be asked of a role's own model in KServe's protocol → method, and what Triton calls it.
local KSERVE = {
  [""] = { "GET", "" },
  ["/ready"] = { "GET", "/ready" },
  ["/infer"] = { "POST", "/infer" },
  ["/generate"] = { "POST", "/generate" },
  ["/generate_stream"] = { "POST", "/generate_stream" },
}

local function needs_method(wanted)
  if ngx.req.get_method() == wanted then return end
  ngx.header["Allow"] = wanted
  return refuse.send(405, {
    message = "this address takes " .. wanted, kind = "invalid_request_error",
    code = "method_not_allowed",
  })
end

local function unknown_path()
  return refuse.send(404, {
    message = "nothing is here", kind = "invalid_request_error", code = "unknown_url",
  })
end

-- The demo whose key the request has; counts the request against that key.
local function admitted()
  local key = keys.match(ngx.var.http_authorization, routes.now().keys)
  if not key then
    ngx.header["WWW-Authenticate"] = "Bearer"
    return refuse.send(401, {
      message = "no key, or one that this gateway does not know: send `Authorization: Bearer KEY`",
      kind = "authentication_error", code = "invalid_api_key",
    })
  end
  ngx.var.berth_demo = key.demo.name
  local most = key.limit or routes.limits.connections_per_key
  if counts.take(key.count) > most then
    -- At once: nginx still reads the refused body, for up to half a minute.
    counts.give(key.count)
    return refuse.send(429, {
      message = "this key has " .. most .. " requests under way, which is all it may have",
      kind = "rate_limit_error", code = "too_many_connections", retry_after_s = 1,
    })
  end
  ngx.var.berth_key = key.count
  return key.demo
end

local function unknown_role(demo, asked)
  return refuse.send(404, {
    message = "no role `" .. asked:sub(1, 100) .. "` for this key; it has: "
      .. table.concat(demo.names, ", "),
    kind = "invalid_request_error", param = "model", code = "model_not_found",
  })
end

-- Sends the request on to one of the endpoint's replicas.
local function forward(role, kind, path, shape)
  local ctx, var = ngx.ctx, ngx.var
  var.berth_role, var.berth_engine = role.name, role.engine
  if role.state ~= "serving" then
    local why = role.reason ~= "" and role.reason or "its model is not loaded"
    return refuse.send(503, refuse.not_served(role, why))
  end
  local endpoint = role[kind]
  if not endpoint or #endpoint.replicas == 0 then
    return refuse.send(404, {
      message = "role `" .. role.name .. "` does not offer this: its engine is " .. role.engine,
      kind = "invalid_request_error", code = "not_offered",
    })
  end
  local well, why, closed = balance.pick(endpoint, {})
  if not well then return refuse.send(503, refuse.not_served(role, why, closed)) end
  ctx.role, ctx.endpoint, ctx.shape = role, endpoint, shape
  ctx.fixed = well.model and well
  ctx.target = well.model and well or endpoint
  var.berth_role_count = role.count
  counts.take(role.count)
  var.berth_path = path
end

-- The demo as it is now: while a body came in, its routes may have changed, or have gone.
local function now(demo)
  return routes.now().demos[demo.name] or { name = demo.name, roles = {}, names = {} }
end

local function bad_body(message, param)
  return refuse.send(400, {
    message = message, kind = "invalid_request_error", param = param, code = "invalid_body",
  })
end

local function by_model(path, kind)
  needs_method("POST")
  local demo = admitted()
  ngx.req.read_body()
  local text = ngx.req.get_body_data()
  if not text and ngx.req.get_body_file() then
    -- Only many tiny chunks need more room than a whole body has.
    return refuse.send(413, {
      message = "the body comes in too many small chunks", kind = "invalid_request_error",
      code = "request_too_large",
    })
  end
  if text and #text > LARGE then
    ngx.ctx.large = true
    if json_members.values(text, MOST_VALUES) > MOST_VALUES then
      return refuse.send(413, {
        message = "the body has more than " .. MOST_VALUES .. " values",
        kind = "invalid_request_error", code = "request_too_large",
      })
    end
  end
  local body, why = cjson.decode(text or "")
  if type(body) ~= "table" or not text:find("^%s*{") then
    return bad_body("the body is not a JSON object" .. (why and ": " .. why or ""))
  end
  if type(body.model) ~= "string" or body.model == "" then
    return bad_body("`model` names the role; it is missing or not a string", "model")
  end
  local from, to, count = json_members.find(text, "model")
  if count ~= 1 then return bad_body("`model` is given more than once", "model") end
  demo = now(demo)
  local role = routes.meant(demo, body.model)
  if not role then return unknown_role(demo, body.model) end
  local trouble, member = sampling.trouble(body)
  if trouble then return bad_body(trouble, member) end
  ngx.ctx.stream = kind == "framing" or body.stream == true
  forward(role, kind, path, kind)
  ngx.var.berth_content_type = "application/json"
  ngx.req.set_body_data(
    text:sub(1, from - 1) .. ngx.ctx.target.quoted .. text:sub(to + 1))
end

local function without_body()
  local length = ngx.var.http_content_length
  if length and length ~= "0" or ngx.var.http_transfer_encoding then
    return bad_body("this address takes no body")
  end
end

-- `/roles/ROLE/v2/models/ROLE…`: a client of KServe's takes `/roles/ROLE` for its server's address.
local function by_kserve(role_name, rest)
  ngx.var.berth_shape = "kserve"
  local asked, operation = rest:match("^/v2/models/([a-z0-9-]+)(.*)$")
  if rest == "/v2/health/ready" then asked, operation = role_name, "/ready" end
  local offered = KSERVE[operation or "-"]
  if asked ~= role_name or not offered then return unknown_path() end
  needs_method(offered[1])
  local demo = admitted()
  if not demo.roles[role_name] then return unknown_role(demo, role_name) end
  if offered[1] == "GET" then without_body() else ngx.req.read_body() end
  demo = now(demo)
  local role = demo.roles[role_name]
  if not role then return unknown_role(demo, role_name) end
  ngx.ctx.stream = operation == "/generate_stream"
  ngx.ctx.member = operation == "" and "name" or "model_name"
  forward(role, "kserve", "", "kserve")
  ngx.var.berth_path = "/v2/models/" .. ngx.ctx.target.model .. offered[2]
  local header = ngx.var.http_inference_header_content_length
  if header and header:find("^%d+$") and #header < 12 then
    ngx.var.berth_content_type = "application/octet-stream"
    ngx.var.berth_tensor_header = header
  else
    ngx.var.berth_content_type = "application/json"
  end
end

local function by_list(id)
  needs_method("GET")
  local demo = admitted()
  without_body()
  if not id then return models.list(demo) end
  local role = routes.meant(demo, id)
  if not role then return unknown_role(demo, id) end
  return models.one(role)
end

function M.run()
  answer.request_id()
  local path = ngx.var.request_uri:match("^[^?]*")
  local kind = BY_MODEL[path]
  if kind then return by_model(path, kind) end
  if path == "/v1/models" then return by_list() end
  local id = path:match("^/v1/models/([A-Za-z0-9][A-Za-z0-9._/-]*)$")
  if id then return by_list(id) end
  local role_name, rest = path:match("^/roles/([a-z0-9-]+)(/v2/.+)$")
  if role_name then return by_kserve(role_name, rest) end
  return unknown_path()
end

return M

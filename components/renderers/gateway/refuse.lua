-- Answers that are the gateway's own, in OpenAI's shape; on KServe's paths in KServe's.
local cjson = require "cjson.safe"

local M = {}

-- OpenAI's error object as JSON. `fields`: message, kind (OpenAI's `type`), code, param.
function M.body(fields)
  return '{"error":{"message":' .. cjson.encode(fields.message)
    .. ',"type":' .. cjson.encode(fields.kind)
    .. ',"param":' .. (fields.param and cjson.encode(fields.param) or "null")
    .. ',"code":' .. (fields.code and cjson.encode(fields.code) or "null") .. "}}"
end

function M.print(status, text, content_type)
  ngx.status = status
  ngx.header["Content-Type"] = content_type or "application/json"
  ngx.header["Content-Length"] = #text
  ngx.print(text)
end

-- Answers and ends the request. Besides those of `body`: retry_after_s.
function M.send(status, fields)
  -- What is left of the body must not be read as the connection's next request.
  ngx.req.discard_body()
  M.say(status, fields)
  return ngx.exit(ngx.HTTP_OK)
end

function M.say(status, fields)
  if fields.retry_after_s then ngx.header["Retry-After"] = fields.retry_after_s end
  ngx.var.berth_outcome = fields.code or fields.kind
  local kserve = ngx.var.berth_shape == "kserve"
  M.print(status, kserve and '{"error":' .. cjson.encode(fields.message) .. "}" or M.body(fields))
end

-- `closed`: whether that is on purpose, as while its model is replaced.
function M.not_served(role, why, closed)
  return {
    message = "role `" .. role.name .. "` is not served now: " .. why,
    kind = "service_unavailable",
    code = role.state == "serving" and not closed and "engine_unavailable" or "role_not_loaded",
    retry_after_s = role.retry_after_s,
  }
end

local OWN = {
  [400] = { message = "not an HTTP request that can be read", kind = "invalid_request_error" },
  [404] = { message = "nothing is here", kind = "invalid_request_error", code = "unknown_url" },
  [408] = { message = "the request's body came too slowly", kind = "timeout" },
  [413] = { message = "the request's body is larger than this gateway takes",
            kind = "invalid_request_error", code = "request_too_large" },
  [414] = { message = "the request's address is too long", kind = "invalid_request_error" },
  [431] = { message = "the request's headers are too large", kind = "invalid_request_error" },
  [504] = { message = "the engine did not answer in time", kind = "timeout",
            code = "engine_timeout" },
}
local FAULT = { message = "the gateway failed; its log says why", kind = "server_error" }

-- What nginx itself refuses, or an engine that could not be reached or ended without an answer:
-- the last is a 503, because the same request is answered once the engine is back.
function M.by_nginx()
  local status = ngx.status
  if status == 502 then
    local role = require("berth.routes").role(ngx.var.berth_demo, ngx.var.berth_role)
    if role then return M.say(503, M.not_served(role, "its engine ended or cannot be reached")) end
  end
  M.say(status, OWN[status] or FAULT)
end

return M

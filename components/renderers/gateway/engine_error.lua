-- An engine's error in OpenAI's shape.
local cjson = require "cjson.safe"
local refuse = require "berth.refuse"

local M = {}

-- The message, type and code in whatever shape an engine puts its errors: OpenAI's object, a flat
-- one (trtllm-serve), `{"error": "text"}` (vLLM's 401, Triton), `{"detail": …}` (FastAPI).
function M.openai(text, status)
  local body = cjson.decode(text)
  if type(body) ~= "table" then
    body = { message = text ~= "" and string.sub(text, 1, 500) or "the engine answered " .. status }
  end
  local error = type(body.error) == "table" and body.error or body
  local message = error.message
  if type(message) ~= "string" then
    message = type(body.error) == "string" and body.error or body.detail
  end
  if message == nil or message == cjson.null then message = string.sub(text, 1, 500) end
  if type(message) == "table" then message = cjson.encode(message) end
  local function word(value) return type(value) == "string" and value or nil end
  return refuse.body {
    message = tostring(message), param = word(error.param), code = word(error.code),
    kind = word(error.type) or status >= 500 and "server_error" or "invalid_request_error",
  }
end

return M

-- An engine's error in OpenAI's shape.
local cjson = require "cjson.safe"
local refuse = require "berth.refuse"

local M = {}

-- OpenAI's own words; engines have others beside them, such as Python's names of exceptions.
local KINDS = {
  invalid_request_error = true, authentication_error = true, permission_error = true,
  rate_limit_error = true, server_error = true, service_unavailable = true, timeout = true,
}
local BY_STATUS = {
  [401] = "authentication_error", [403] = "permission_error", [429] = "rate_limit_error",
}
-- As vLLM and TensorRT-LLM say that a prompt does not fit, some of them with a 500.
local TOO_LONG = { "maximum context length", "maximum model length", "max_seq_len", "max_num_tokens" }

local function kind_of(said, status)
  if KINDS[said] then return said end
  return BY_STATUS[status] or status >= 500 and "server_error" or "invalid_request_error"
end

local function code_of(said, message)
  for _, words in ipairs(TOO_LONG) do
    if message:find(words, 1, true) then return "context_length_exceeded" end
  end
  return said
end

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
  message = tostring(message)
  return refuse.body {
    message = message, param = word(error.param), code = code_of(word(error.code), message),
    kind = kind_of(word(error.type), status),
  }
end

return M

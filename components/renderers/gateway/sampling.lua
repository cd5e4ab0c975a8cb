-- Bounds that OpenAI's API states and every engine has. Some refuse what lies outside with a 400,
-- some with a 500, some answer all the same: here it is one 400, whatever serves.
local cjson = require "cjson.safe"

local M = {}

local BOUNDS = {
  { "temperature", 0 }, { "top_p", 0, 1 }, { "presence_penalty", -2, 2 },
  { "frequency_penalty", -2, 2 }, { "max_tokens", 1 }, { "max_completion_tokens", 1 },
}

-- What is wrong with a request's body, and the name of the member, or nil.
function M.trouble(body)
  for _, bound in ipairs(BOUNDS) do
    local name, least, most = bound[1], bound[2], bound[3]
    local value = body[name]
    if value ~= nil and value ~= cjson.null then
      if type(value) ~= "number" then return "`" .. name .. "` is a number", name end
      if value < least or most and value > most then
        local range = most and least .. " to " .. most or least .. " or more"
        return "`" .. name .. "` is " .. range .. ", not " .. value, name
      end
    end
  end
end

return M

-- How many requests are under way, per replica and per key, over all workers.
--
-- Each worker also keeps its own share, so that what a killed worker had counted is taken back by
-- the one that nginx starts in its place.
local dict = ngx.shared.berth_counts

local M = {}

-- Run by the master for each configuration that it loads.
function M.new_generation()
  M.generation = dict:incr("generation", 1, 0)
end

local function share_of(name)
  return name .. " of " .. M.generation .. "." .. ngx.worker.id()
end

function M.of(name)
  return dict:get(name) or 0
end

-- Replica's id → its requests, of all that have any; those that no route leads to any more too.
function M.of_replicas()
  local found = {}
  for _, name in ipairs(dict:get_keys(0)) do
    if name:find("^127%.0%.0%.1:") and not name:find(" of ", 1, true) and M.of(name) > 0 then
      found[name] = M.of(name)
    end
  end
  return found
end

function M.take(name)
  dict:incr(share_of(name), 1, 0)
  return dict:incr(name, 1, 0)
end

function M.give(name)
  dict:incr(share_of(name), -1, 0)
  dict:incr(name, -1, 0)
end

-- Run by a worker that starts.
function M.take_back(names)
  for _, name in ipairs(names) do
    local left = dict:get(share_of(name)) or 0
    if left ~= 0 then
      dict:incr(name, -left, 0)
      dict:set(share_of(name), 0)
    end
  end
end

return M

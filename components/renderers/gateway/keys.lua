-- Keys of demos. The host holds only their SHA-256 hashes: a key is made of 256 random bits, so a
-- slow hash would add nothing.
local ffi = require "ffi"

-- OpenSSL's libcrypto is part of nginx's own process.
ffi.cdef [[
unsigned char *SHA256(const unsigned char *d, size_t n, unsigned char *md);
int CRYPTO_memcmp(const void *a, const void *b, size_t len);
]]
local C = ffi.C
local LONGEST = 512

local M = {}

-- 32 bytes from 64 hexadecimal digits.
function M.from_hex(hex)
  return (hex:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end))
end

local digest = ffi.new("unsigned char[32]")

-- The known key that the header presents, or nil. All known keys are compared, each in constant
-- time, so that the time taken says nothing of any of them.
function M.match(header, known)
  local presented = header and header:match("^[Bb]earer +([!-~]+)$")
  if not presented or #presented > LONGEST then return nil end
  C.SHA256(presented, #presented, digest)
  local found
  for _, key in ipairs(known) do
    if C.CRYPTO_memcmp(digest, key.hash, 32) == 0 then found = key end
  end
  return found
end

return M

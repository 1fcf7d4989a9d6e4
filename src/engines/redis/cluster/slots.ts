/** Which of the 16384 slots of a cluster a key belongs to, as Redis computes it. */
const SLOTS = 16_384

/** CRC16 of the XMODEM kind. */
function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff
  }
  return crc
}

/** Only what is between the first braces counts, so keys with the same text there are on one slot. */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/.exec(key)
  const isTagged = tag !== null && key.indexOf('{') === tag.index
  return crc16(Buffer.from(isTagged ? (tag[1] ?? '') : key)) % SLOTS
}

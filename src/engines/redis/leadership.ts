import type { Leadership, Term } from '../../engine/leadership.ts'
import { EngineError } from '../../errors.ts'
import type { RedisCore } from './core.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/**
 * The term is in the hash and not in a TTL, so that the number stays when it has run out, and one clock decides. A term
 * that ends later than its lease allows was begun before the server's clock was set back: nobody waits for that.
 */
const TERM = `
local office = own('office:' .. ARGV[2])
local function term()
  local held = call('HMGET', office, 'holder', 'number', 'until', 'lease')
  local ends, lease = tonumber(held[3] or nil), tonumber(held[4] or nil)
  if not held[1] or ends == nil or lease == nil or ends <= now or ends > now + lease then return nil end
  return { held[1], held[2], string.format('%.0f', ends - now) }
end
`

/** ARGV: time, office, holder, lease (ms). */
const campaignScript = compose(
  'campaign',
  {},
  GOES_ON_WHEN_FULL,
  TERM,
  `
local current = term()
if current and current[1] ~= ARGV[3] then return current end
if call('HGET', office, 'holder') ~= ARGV[3] then call('HINCRBY', office, 'number', 1) end
call('HSET', office, 'holder', ARGV[3], 'until', string.format('%.0f', now + ARGV[4]), 'lease', ARGV[4])
return { ARGV[3], call('HGET', office, 'number'), ARGV[4] }
`,
)

/** ARGV: time, office, holder. */
const resignScript = compose(
  'resign',
  {},
  TERM,
  `if call('HGET', office, 'holder') == ARGV[3] then call('HDEL', office, 'holder', 'until', 'lease') end`,
)

/** ARGV: time, office. */
const leaderScript = compose('leader', {}, TERM, `return term()`)

export function createLeadership({ database, steps }: RedisCore): Leadership {
  return {
    async campaign(office, holder, leaseMs) {
      // Every keeper comes by here every few seconds, so that a step of the server's clock is noticed soon.
      await steps.follow()
      const term = toTerm(await database.run(campaignScript(), [office, holder, leaseMs]))
      if (term === null)
        throw new EngineError('ERR_STORAGE_FAILED', `Redis: campaign: no answer; is '${office}' a hash?`)
      return term
    },
    resign: async (office, holder) => void (await database.run(resignScript(), [office, holder])),
    leader: async (office) => toTerm(await database.run(leaderScript(), [office])),
  }
}

function toTerm(answer: unknown): Term | null {
  if (!Array.isArray(answer)) return null
  const [holder, number, leftMs] = answer
  return { holder: String(holder), number: Number(number), leftMs: Number(leftMs) }
}

/** A dozen prompts as people type them: something learnt, beside data that must not be kept. */

export interface Prompt {
  /** As the assistant names it: not a ULID. */
  readonly session: string
  readonly text: string
  /** What must be in no file afterwards. */
  readonly raw: readonly string[]
}

/** Put together here, so that no scanner takes them for keys that somebody lost. */
const GITHUB_TOKEN = `ghp_${'k7Qw2ZrT9xLmB4vNc8Yd1Hs6Pf3Gj5Ua0EoX'}`
const AWS_KEY = `AKIA${'QYLPMN5HHHFPZAM2'}`
const STRIPE_KEY = `sk_live_${'51Hq8ZkLmNpQrStUvWxYz0123'}`
const JWT = [
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9',
  'eyJzdWIiOiI3NzE5IiwibmFtZSI6Ikpvbm55In0',
  'Qm9sZC1zaWduYXR1cmUtb2YtYS1kZW1vLTEyMw',
].join('.')
const KEY_BODY = 'MC4CAQAwBQYDK2VwBCIEIHJ1bm5pbmdEZW1vS2V5Tm90UmVhbDEyMzQ1Njc4OTA'
const PRIVATE_KEY = `-----BEGIN ${'PRIVATE KEY'}-----\n${KEY_BODY}\n-----END ${'PRIVATE KEY'}-----`

const prompt = (session: string, text: string, raw: readonly string[] = []): Prompt => ({ session, text, raw })

export const PROMPTS: readonly Prompt[] = [
  prompt(
    'billing',
    'ingrid.solberg@nordlys.example reports timeouts again. The root cause was the connection pool: it had ten connections for forty workers.',
    ['ingrid.solberg@nordlys.example'],
  ),
  prompt(
    'billing',
    'Call her at +47 912 34 567 when it is out. We decided to keep the pool at twice the number of cores, because more connections only wait for the same disk.',
    ['+47 912 34 567', '912 34 567'],
  ),
  prompt(
    'billing',
    'The test card 4539 1488 0343 6467 still fails in staging. The fix was to send the amount in cents: the gateway reads 12.5 as 12.',
    ['4539 1488 0343 6467'],
  ),
  prompt(
    'billing',
    'Refund goes to DE89 3704 0044 0532 0130 00 for now. Always store the refund before you call the bank, otherwise a crash pays twice.',
    ['DE89 3704 0044 0532 0130 00'],
  ),
  prompt(
    'deploy',
    `CI cannot push: the token is ${GITHUB_TOKEN}. Turns out a token without the scope packages:write gets a 404, not a 403.`,
    [GITHUB_TOKEN],
  ),
  prompt(
    'deploy',
    `Use ${AWS_KEY} for the bucket until the role exists. Never put a region into the bucket name, because the bucket cannot move with it.`,
    [AWS_KEY],
  ),
  prompt(
    'deploy',
    `postgres://app:Tr0ub4dor-and-3@db.internal.example:5432/app refuses the migration. The problem was a lock held by an idle transaction; set idle_in_transaction_session_timeout.`,
    ['Tr0ub4dor-and-3'],
  ),
  prompt(
    'deploy',
    `Logs are in /home/mwalters/deploy/logs and the host is 203.0.113.77. Remember to drain the old worker before you start the new one, so that no job runs on two versions.`,
    ['mwalters', '203.0.113.77'],
  ),
  prompt(
    'login',
    `Authorization: Bearer ${JWT} gets a 401 on one machine. The cause was a clock that ran four minutes ahead.`,
    [JWT],
  ),
  prompt(
    'login',
    `Here is the key of the old server:\n\n${PRIVATE_KEY}\n\nWe switched from RSA to Ed25519 keys because the small devices verify them faster.`,
    [KEY_BODY],
  ),
  prompt(
    'payments',
    `${STRIPE_KEY} is in the .env of the worker. What finally worked was one webhook secret per endpoint instead of one for the whole account.`,
    [STRIPE_KEY],
  ),
  prompt(
    'payments',
    'My colleague Henrik Aaltonen (henrik.a@nordlys.example) wrote the retry. I learned that the provider repeats a webhook for three days, so its id must be kept that long.',
    ['henrik.a@nordlys.example', 'Henrik Aaltonen'],
  ),
]

export function rawStrings(): readonly string[] {
  return [...new Set(PROMPTS.flatMap(({ raw }) => raw))]
}

/** Personal data and secrets of twenty-four kinds, made up from a seed, each in a sentence as people write them. */

export interface Planted {
  readonly kind: string
  readonly prompt: string
  /** What must never be found again, in any file. */
  readonly raw: readonly string[]
}

type Random = () => number

const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const HEX = '0123456789abcdef'
const UPPER_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const ALPHANUMERIC = `${LOWER}${UPPER_DIGITS}`

function pick(random: Random, alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
}

/** Digits whose last one makes the Luhn sum right. */
function card(random: Random): string {
  const body = `4${pick(random, DIGITS, 14)}`
  const sum = [...body].reduce((total, digit, index) => {
    const doubled = Number(digit) * (index % 2 === 0 ? 2 : 1)
    return total + (doubled > 9 ? doubled - 9 : doubled)
  }, 0)
  return `${body}${(10 - (sum % 10)) % 10}`
}

function iban(random: Random): string {
  const account = pick(random, DIGITS, 18)
  // DE is 1314 in the check.
  const check = 98n - (BigInt(`${account}131400`) % 97n)
  return `DE${String(check).padStart(2, '0')}${account}`
}

const base64Url = (text: string): string => Buffer.from(text).toString('base64url')

const KINDS: Readonly<Record<string, (random: Random) => readonly [sentence: string, ...raw: string[]]>> = {
  mail: (random) => {
    const mail = `${pick(random, LOWER, 9)}.${pick(random, LOWER, 6)}@${pick(random, LOWER, 8)}.example.org`
    return [`Please write to ${mail} when it is done.`, mail]
  },
  phone: (random) => {
    const [area, end] = [`17${pick(random, DIGITS, 1)}`, pick(random, DIGITS, 7)]
    return [`Call me on +49 ${area} ${end} tonight.`, `${area} ${end}`]
  },
  ipv4: (random) => {
    const ip = `81.${100 + Math.floor(random() * 99)}.${100 + Math.floor(random() * 99)}.${100 + Math.floor(random() * 99)}`
    return [`The server at ${ip} does not answer.`, ip]
  },
  ipv6: (random) => {
    const ip = `2a01:4f8:${pick(random, 'abcdef', 1)}${pick(random, HEX, 3)}:${pick(random, '123456789', 1)}${pick(random, HEX, 3)}::${pick(random, '123456789', 2)}`
    return [`It listens on ${ip} only.`, ip]
  },
  card: (random) => {
    const number = card(random)
    const spaced = number.replace(/(\d{4})(?=\d)/g, '$1 ')
    return [`The test order used card ${spaced}.`, spaced, number]
  },
  iban: (random) => {
    const number = iban(random)
    return [`Refund it to ${number} please.`, number]
  },
  homePath: (random) => {
    const user = `u${pick(random, LOWER, 11)}`
    return [`The log is in /home/${user}/projects/app/error.log today.`, user]
  },
  windowsPath: (random) => {
    const user = `w${pick(random, LOWER, 11)}`
    return [`It is in C:\\Users\\${user}\\Desktop\\notes.txt now.`, user]
  },
  aws: (random) => {
    const id = `AKIA${pick(random, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}`
    return [`The key is ${id}, why is it refused?`, id]
  },
  github: (random) => {
    const token = `ghp_${pick(random, ALPHANUMERIC, 36)}`
    return [`I pushed with ${token} and got 403.`, token]
  },
  gitlab: (random) => {
    const token = `glpat-${pick(random, ALPHANUMERIC, 20)}`
    return [`curl -H "PRIVATE-TOKEN: ${token}" works.`, token]
  },
  slack: (random) => {
    const token = `xoxb-${pick(random, DIGITS, 12)}-${pick(random, DIGITS, 12)}-${pick(random, ALPHANUMERIC, 24)}`
    return [`The bot uses ${token} for the channel.`, token]
  },
  stripe: (random) => {
    const key = `sk_live_${pick(random, ALPHANUMERIC, 24)}`
    return [`Payments fail with ${key} since noon.`, key]
  },
  openai: (random) => {
    const key = `sk-proj-${pick(random, ALPHANUMERIC, 48)}`
    return [`export OPENAI_API_KEY=${key} did not help.`, key]
  },
  anthropic: (random) => {
    const key = `sk-ant-api03-${pick(random, ALPHANUMERIC, 80)}`
    return [`We tried ${key} as well.`, key]
  },
  google: (random) => {
    const key = `AIza${pick(random, ALPHANUMERIC, 35)}`
    return [`The map loads with key=${key} only.`, key]
  },
  npm: (random) => {
    const token = `npm_${pick(random, ALPHANUMERIC, 36)}`
    return [`//registry/:_authToken=${token} is in the file.`, token]
  },
  jwt: (random) => {
    const body = base64Url(JSON.stringify({ sub: pick(random, LOWER, 12), role: 'admin' }))
    const token = `${base64Url('{"alg":"HS256","typ":"JWT"}')}.${body}.${pick(random, ALPHANUMERIC, 43)}`
    return [`The cookie holds ${token} after the login.`, token, body]
  },
  privateKey: (random) => {
    const line = pick(random, ALPHANUMERIC, 64)
    const block = `-----BEGIN RSA PRIVATE KEY-----\n${line}\n${pick(random, ALPHANUMERIC, 40)}\n-----END RSA PRIVATE KEY-----`
    return [`This is what I deploy with:\n${block}\nIs it right?`, line]
  },
  connectionString: (random) => {
    const password = `P${pick(random, ALPHANUMERIC, 15)}`
    return [`DATABASE_URL is postgres://app:${password}@db.internal:5432/shop there.`, password]
  },
  password: (random) => {
    const password = `x${pick(random, ALPHANUMERIC, 13)}!`
    return [`In the config: password = "${password}" and it still says no.`, password]
  },
  bearer: (random) => {
    const token = pick(random, ALPHANUMERIC, 40)
    return [`Send the header Authorization: Bearer ${token} with it.`, token]
  },
  splitMail: (random) => {
    const [name, host] = [pick(random, LOWER, 10), `${pick(random, LOWER, 8)}.example.net`]
    return [`Write to ${name.slice(0, 4)}\u200b${name.slice(4)}@${host} instead.`, `${name}@${host}`, name]
  },
  encodedMail: (random) => {
    const mail = `${pick(random, LOWER, 12)}@${pick(random, LOWER, 9)}.example.com`
    const encoded = Buffer.from(`contact: ${mail}`).toString('base64')
    return [`The blob ${encoded} came back from the service.`, encoded, mail]
  },
}

export const KIND_NAMES: readonly string[] = Object.keys(KINDS)

/** `perKind` prompts of each kind, in a mixed order. Each also says something that can be learnt. */
export function plantSecrets(random: Random, perKind: number): readonly Planted[] {
  const planted = Object.entries(KINDS).flatMap(([kind, make]) =>
    Array.from({ length: perKind }, () => {
      const [sentence, ...raw] = make(random)
      const learnt = `The fix for case ${pick(random, LOWER, 8)} was to raise the timeout, because the proxy closes idle connections.`
      return { kind, prompt: `${sentence} ${learnt}`, raw }
    }),
  )
  return planted
    .map((one) => ({ one, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** No rule takes more than linear time, whatever the text. Times are of the CPU, and the bounds wide: the machine may be busy. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { findEncoded } from './encoded.ts'
import { BUILT_IN_RULES, createSanitizer } from './sanitize.ts'
import { decoded, joined, viewOf } from './view.ts'

const sanitize = createSanitizer()

function cpuMs(run: () => unknown): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** Text that makes the rule start, go far, and fail. */
const AGAINST: Readonly<Record<string, readonly string[]>> = {
  mail: ['a@', 'a.a@', '@', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b..'],
  'mail-spelled': ['a (at) ', 'a at b dot ', 'a.b-', 'a @ b . '],
  phone: ['1-', '0 ', '+1 (', '(555) 234-', '01 ', 'phone 12345678901234567'],
  ipv4: ['1.', '1.2.3.4.', '255.'],
  ipv6: ['aa:', ':: ', '2001:', ':'],
  mac: ['aa:', 'aa-'],
  'home-path': ['/home/', '/Users/a ', 'C:\\Users\\a '],
  card: ['4111 ', '4111-1111-1111-111', '1'],
  iban: ['DE89 ', 'DE89', 'XX12'],
  ssn: ['123-', '123-45-', 'ssn '],
  'private-key': [
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\n',
    '-----BEGIN A A A A A A ',
  ],
  'aws-secret-key': ['aB3/', 'aws aB3'],
  'evm-private-key': ['ab12', 'private 0x'],
  'connection-string': ['x://', 'x://a:', 'x://a:b@', 'x://a:b/@'],
  authorization: ['bearer ', 'Authorization: ', 'x-api-key: '],
  'user-flag': [' -u a', ' -u a:'],
  assignment: ['password=', 'password: "', 'token: \\"', 'password=a(', ': ', '='],
  told: [
    'password is ',
    '--password ',
    'password a a ',
    'mysql ',
    '.password("',
    'cookie: a',
    'login a password ',
    '?key=',
  ],
  jwt: ['eyJ', 'eyJaaaaaaaa.', '.eyJ'],
  openai: ['sk-', 'sk-a', '-sk-proj-'],
  google: ['AIza', '1//0', 'ya29.'],
  telegram: ['12345678:AA', '1:'],
  sendgrid: ['SG.', 'SG.aaaaaaaaaaaaaaaaaaaaaa.'],
  'service-token': ['key', 'gsk_', 'key-a'],
}

/** 4 kB more would be noise: below this the clock's steps are too coarse to tell. */
const NOISE_MS = 60

function assertLinear(name: string, unit: string, run: (text: string) => unknown): void {
  const text = (length: number) => unit.repeat(Math.ceil(length / unit.length))
  run(text(10_000))
  const small = Math.min(...[1, 2].map(() => cpuMs(() => run(text(10_000)))))
  const large = cpuMs(() => run(text(100_000)))
  // Ten times the text: quadratic time would be a hundred times as much.
  assert.ok(
    large < small * 40 + NOISE_MS,
    `${name} on ${JSON.stringify(unit)}: ${small} ms for 10 kB, ${large} ms for 100 kB`,
  )
}

test('each rule takes linear time on text built against it', () => {
  for (const { id, find } of BUILT_IN_RULES) {
    // A token's prefix, alone and with a tail that is too short.
    const prefix = id.split('-')[0] ?? id
    for (const unit of AGAINST[id] ?? [`${prefix}_`, `${prefix}-aB3`]) assertLinear(id, unit, find)
  }
})

const HOSTILE = [
  'a',
  '@',
  '1-',
  'x://',
  '-----BEGIN ',
  '\u200b',
  '＠',
  'ﷺ',
  '%40',
  'a\n',
  '[EMAIL]',
  'password=',
  'QUJD',
  'aB3dE5gH7jK9/',
]

test('views and encodings take linear time', () => {
  for (const unit of [...HOSTILE, '%e2%80%8b', '&#64;', '\\u0040', 'a-\n', 'A\r\n ', '\ud83d']) {
    assertLinear('viewOf', unit, viewOf)
    assertLinear('decoded', unit, (text) => decoded(viewOf(text)))
    assertLinear('joined', unit, (text) => joined(viewOf(text)))
    assertLinear('findEncoded', unit, (text) => findEncoded(text, () => []))
  }
})

test('a hostile text is sanitised in time in proportion to its length, and once is enough', () => {
  for (const unit of HOSTILE) {
    assertLinear('sanitize', unit, sanitize)
    const { text } = sanitize(unit.repeat(2_000))
    assert.equal(sanitize(text).text, text)
  }
})

test('a megabyte takes a bounded time', () => {
  for (const unit of ['a', 'x://', 'aB3dE5gH7jK9']) {
    const ms = cpuMs(() => sanitize(unit.repeat(2 ** 20 / unit.length)))
    // About 100 ms on an idle machine.
    assert.ok(ms < 3_000, `${unit}: ${ms} ms`)
  }
})

// B10 B170
test('10 kB of docs and code with secrets are sanitised in less than 50 ms', () => {
  const folder = path.join(import.meta.dirname, '../../..')
  const docs = readFileSync(path.join(folder, 'docs/architecture.md'), 'utf8')
  const code = readFileSync(path.join(folder, 'src/errors.ts'), 'utf8')
  const text = `${docs.slice(0, 5_000)}\nmail ann@example.com, postgres://a:b@10.0.0.1\n${code}`.slice(0, 10_240)
  const times = Array.from({ length: 100 }, () => cpuMs(() => sanitize(text))).sort((one, other) => one - other)
  assert.ok((times[94] ?? 0) < 50, `p95 is ${times[94]} ms`)
})

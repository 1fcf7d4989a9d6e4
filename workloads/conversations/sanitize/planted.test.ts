/** Secrets at random places of random text, hidden in random ways; and our own source and docs, which have none. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()

const letters = (unit: string, length: number) =>
  fc.string({ unit: fc.constantFrom(...unit), minLength: length, maxLength: length })
const lower = 'abcdefghijklmnopqrstuvwxyz'
const alphanumeric = `${lower}${lower.toUpperCase()}0123456789`
const digits = '0123456789'

function luhn(body: string): string {
  const sum = [...body].reverse().reduce((total, digit, index) => {
    const doubled = index % 2 === 0 ? Number(digit) * 2 : Number(digit)
    return total + (doubled > 9 ? doubled - 9 : doubled)
  }, 0)
  return `${body}${(10 - (sum % 10)) % 10}`
}

function iban(account: string): string {
  const remainder = BigInt(`${account}131400`) % 97n
  return `DE${String(98n - remainder).padStart(2, '0')}${account}`
}

/** What is planted, and what must not be left. */
const SECRETS: readonly fc.Arbitrary<{ readonly text: string; readonly raw: string }>[] = [
  ...[
    fc.tuple(letters(lower, 6), letters(lower, 5)).map(([name, host]) => `${name}.x@${host}.example.com`),
    letters(digits, 7).map((number) => `+49 30 ${number}`),
    fc
      .tuple(fc.integer({ min: 11, max: 99 }), fc.integer({ min: 0, max: 255 }))
      .map(([one, two]) => `203.${one}.${two}.7`),
    letters(digits, 14).map((body) => luhn(`4${body}`)),
    letters(digits, 18).map(iban),
    letters(alphanumeric, 36).map((tail) => `${'ghp'}_${tail}`),
    letters(alphanumeric, 40).map((tail) => `${'sk'}-ant-${tail}`),
    letters(alphanumeric, 24).map((tail) => `${'xoxb'}-1234567890-${tail}`),
    letters('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16).map((tail) => `${'AKIA'}${tail}`),
    letters(alphanumeric, 24).map((tail) => `${'sk'}_live_${tail}`),
  ].map((secret) => secret.map((text) => ({ text, raw: text }))),
  letters(alphanumeric, 12).map((raw) => ({ text: `password=${raw}7`, raw: `${raw}7` })),
  letters(alphanumeric, 12).map((raw) => ({ text: `postgres://app:${raw}@db/x`, raw })),
  letters(lower, 8).map((raw) => ({ text: `/home/${raw}/src`, raw })),
]

/** Ways to hide. A full-width form of every letter, digit and sign. */
const HIDE: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => [...text].join('\u200b'),
  (text) => [...text].map((letter, index) => (index % 4 === 3 ? `\u00ad${letter}` : letter)).join(''),
  (text) => text.replace(/[!-~]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
  (text) => text.replace(/[@:/.]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  (text) => text.replace(/[@:/.]/g, (letter) => `&#${letter.charCodeAt(0)};`),
  (text) => Buffer.from(`it is ${text} now`).toString('base64'),
]

const words = fc
  .array(
    fc.constantFrom(
      'const',
      'x',
      '=>',
      'the',
      'queue',
      '(job)',
      '{',
      '}',
      'n42',
      'in',
      'Größe',
      'данные',
      '\n',
      '#',
      '"ok"',
    ),
    { maxLength: 12 },
  )
  .map((list) => list.join(' '))

// B15
test('of secrets that are planted and hidden at random nothing raw is left', () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  console.log(`seed ${seed}`)
  const planted = fc.record({ secret: fc.oneof(...SECRETS), hide: fc.constantFrom(...HIDE.keys()), before: words })
  fc.assert(
    fc.property(fc.array(planted, { minLength: 1, maxLength: 5 }), words, (plants, end) => {
      const hidden = plants.map(({ secret, hide }) => HIDE[hide]?.(secret.text) ?? '')
      const text = plants.map(({ before }, index) => `${before}\t${hidden[index]} `).join('') + end
      const result = sanitize(text)
      for (const [index, { secret, hide }] of plants.entries()) {
        const raw = HIDE[hide]?.(secret.raw) ?? ''
        for (const form of [secret.raw, raw, hidden[index] ?? '']) {
          assert.ok(!result.text.includes(form), `${form} is left`)
        }
      }
      assert.ok(result.findings.length >= plants.length)
      assert.equal(sanitize(result.text).text, result.text)
      for (const { before } of plants) assert.ok(result.text.includes(before), 'what stands around stays')
    }),
    { seed, numRuns: 500 },
  )
})

const ROOT = path.join(import.meta.dirname, '../../..')
/** Addresses, users and passwords of examples: found, and rightly. */
const EXAMPLES =
  /example\.|^(?:user|app|owner|worker|viewer|operator|:?password|:?secret|a)\b|s3cret|hunter2|^(?:10|192\.168)\.|ann\b/i

test('in our own source and docs next to nothing is taken for a secret', () => {
  const files = globSync(['src/**/*.ts', 'docs/*.md', 'README.md'], { cwd: ROOT }).filter(
    (file) => !file.includes('.test.'),
  )
  let characters = 0
  const wrong: string[] = []
  for (const file of files) {
    const text = readFileSync(path.join(ROOT, file), 'utf8')
    characters += text.length
    for (const { rule, snippet } of sanitize(text).findings) {
      if (!EXAMPLES.test(snippet)) wrong.push(`${file}: ${rule}: ${snippet}`)
    }
  }
  // One in 200 kB, so that a new example does not break the build.
  assert.ok(wrong.length <= characters / 200_000, wrong.join('\n'))
})

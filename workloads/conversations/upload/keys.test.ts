import assert from 'node:assert/strict'
import { createCipheriv, scryptSync } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { keccak256 } from 'viem'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { withoutPackage } from '../../../test/fixtures/without-package.ts'
import { readKey } from './keys.ts'
import { loadViem } from './viem.ts'

const files = tempFiles()

/** The vector of the Web3 Secret Storage definition. */
const KEY = '7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d'
const PASSWORD = 'testpassword'
const PBKDF2 = {
  cipher: 'aes-128-ctr',
  cipherparams: { iv: '6087dab2f9fdbbfaddc31a909735c1e6' },
  ciphertext: '5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46',
  kdf: 'pbkdf2',
  kdfparams: {
    c: 262144,
    dklen: 32,
    prf: 'hmac-sha256',
    salt: 'ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd',
  },
  mac: '517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2',
}
const SCRYPT_SALT = 'ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19'
const SCRYPT = encrypt({ dklen: 32, n: 4096, r: 8, p: 6, salt: SCRYPT_SALT })

/** As geth writes it. Its published vector has r = 1, which OpenSSL refuses with that n; no wallet uses it. */
function encrypt(kdfparams: { dklen: number; n: number; r: number; p: number; salt: string }) {
  const { n: N, r, p, salt, dklen } = kdfparams
  const derived = scryptSync(PASSWORD, Buffer.from(salt, 'hex'), dklen, { N, r, p })
  const iv = Buffer.alloc(16, 7)
  const ciphertext = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv).update(KEY, 'hex')
  return {
    cipher: 'aes-128-ctr',
    cipherparams: { iv: iv.toString('hex') },
    ciphertext: ciphertext.toString('hex'),
    kdf: 'scrypt',
    kdfparams,
    mac: keccak256(Buffer.concat([derived.subarray(16), ciphertext])).slice(2),
  }
}

let count = 0
function keystore(content: unknown, mode = 0o600): string {
  count += 1
  const file = join(files.folder, `keystore-${count}.json`)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  chmodSync(file, mode)
  return file
}

function parts(environment: Record<string, string> = { MILLRACE_KEYSTORE_PASSWORD: PASSWORD }) {
  const warnings: unknown[] = []
  return { environment, warnings, log: { warn: (...line: unknown[]) => void warnings.push(line) } }
}

// B74
test('a key is read from the environment', async () => {
  for (const value of [KEY, `0x${KEY}`, `0x${KEY.toUpperCase()}\n`]) {
    assert.equal(await readKey('env:WALLET', parts({ WALLET: value })), `0x${KEY}`)
  }
})

// B74
test('a key is read from a v3 keystore with scrypt or pbkdf2', async () => {
  for (const crypto of [SCRYPT, PBKDF2]) {
    const file = keystore({ version: 3, crypto })
    const given = parts()
    assert.equal(await readKey(`file:${file}`, given), `0x${KEY}`)
    assert.deepEqual(given.warnings, [])
  }
  const older = keystore({ version: 3, Crypto: PBKDF2 })
  assert.equal(await readKey(`file:${older}#WALLET_PASSWORD`, parts({ WALLET_PASSWORD: PASSWORD })), `0x${KEY}`)
})

test('a keystore that other users can read is reported', async () => {
  const given = parts()
  await readKey(`file:${keystore({ version: 3, crypto: PBKDF2 }, 0o644)}`, given)
  assert.match(JSON.stringify(given.warnings), /chmod 600.*"mode":"644"/)
})

const WRONG = 'a wrong password'
const cheap = { ...PBKDF2, kdfparams: { ...PBKDF2.kdfparams, c: 1 } }
const file = (content: unknown) => `file:${keystore(content)}`
const FAILURES: readonly (readonly [what: string, reference: () => string, message: RegExp])[] = [
  ['a variable that is not set', () => 'env:MISSING', /no variable MISSING/],
  ['a variable without a key', () => 'env:SHORT', /SHORT holds no private key/],
  ['a reference that is the key itself', () => KEY, /is no reference/],
  ['a reference with the key itself as its name', () => `env:${KEY}`, /is no reference/],
  ['a reference with the key as the name of a variable', () => `env:0x${KEY}`, /is no reference/],
  ['a reference with the key as a path', () => `file:0x${KEY}`, /is no reference/],
  ['a file that is missing', () => `file:${join(files.folder, 'missing')}`, /cannot be read \(ENOENT\)/],
  [
    'a password that is not set',
    () => `${file({ version: 3, crypto: cheap })}#NOT_SET`,
    /no variable with the name after '#'/,
  ],
  [
    'the password itself after #',
    () => `${file({ version: 3, crypto: cheap })}#${PASSWORD}`,
    /no variable with the name/,
  ],
  ['a wrong password', () => `${file({ version: 3, crypto: cheap })}#WRONG`, /does not open/],
  ['a damaged ciphertext', () => file({ version: 3, crypto: { ...cheap, ciphertext: KEY } }), /does not open/],
  ['a file that is the bare key', () => file(KEY), /is not JSON|no v3 keystore/],
  ['a file of bare text', () => file(`key ${KEY}`), /is not JSON/],
  ['another version', () => file({ version: 1, crypto: cheap, key: KEY }), /no v3 keystore/],
  ['another cipher', () => file({ version: 3, crypto: { ...cheap, cipher: 'aes-256-gcm' } }), /no v3 keystore/],
  ['other parameters', () => file({ version: 3, crypto: { ...cheap, kdfparams: { key: KEY } } }), /parameters/],
  [
    'parameters that would take all memory',
    () => file({ version: 3, crypto: { ...SCRYPT, kdfparams: { ...SCRYPT.kdfparams, n: 2 ** 30 } } }),
    /too costly/,
  ],
  [
    'parameters that scrypt refuses',
    () => file({ version: 3, crypto: { ...SCRYPT, kdfparams: { ...SCRYPT.kdfparams, n: 1000 } } }),
    /invalid/,
  ],
]

for (const [what, reference, message] of FAILURES) {
  // B74
  test(`${what}: an error that says so without the key or the password`, async () => {
    const environment = { MILLRACE_KEYSTORE_PASSWORD: PASSWORD, WRONG, SHORT: KEY.slice(2) }
    const given = parts(environment)
    const error = await readKey(reference(), given).then(
      () => assert.fail('no error'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof Error)
    assert.match(error.message, message)
    assert.equal(Reflect.get(error, 'code'), 'ERR_NON_RETRYABLE')
    const told = `${error.stack} ${String(error.cause)} ${JSON.stringify(error)} ${JSON.stringify(given.warnings)}`
    for (const secret of [KEY.slice(2, 20), PASSWORD, WRONG]) assert.ok(!told.includes(secret))
  })
}

test('without viem it says what to install', async () => {
  const refusal = { code: 'ERR_MODULE_MISSING', message: /npm install viem/ }
  await withoutPackage('viem/accounts', () => assert.rejects(loadViem(), refusal))
})

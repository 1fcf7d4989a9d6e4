import { createDecipheriv, pbkdf2, scrypt, timingSafeEqual } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { fieldOf, NonRetryable } from '../../../src/errors.ts'
import type { Log } from '../../../src/job/definition.ts'
import { KEY_REFERENCE } from '../jobs/payloads.ts'
import { loadViem } from './viem.ts'

export type PrivateKey = `0x${string}`

const KEY = /^(?:0x)?([0-9a-fA-F]{64})$/
const PASSWORD_NAME = 'MILLRACE_KEYSTORE_PASSWORD'
/** More would take minutes: such a file was made to stop the worker, or by mistake. */
const SCRYPT_MEMORY_MAX = 1 << 30
const PBKDF2_ROUNDS_MAX = 10_000_000

export interface KeyParts {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Log, 'warn'>
}

/**
 * Reads the key that a reference names: `env:NAME`, or `file:PATH` of a v3 keystore, whose password is in
 * MILLRACE_KEYSTORE_PASSWORD or, with `file:PATH#NAME`, in that variable. Errors name the reference, never what it holds,
 * and have no cause for the same reason.
 */
export async function readKey(reference: string, parts: KeyParts): Promise<PrivateKey> {
  const place = reference.slice(reference.indexOf(':') + 1)
  if (KEY_REFERENCE.test(reference)) {
    return reference.startsWith('env:') ? keyFromEnvironment(place, parts) : keyFromFile(place, parts)
  }
  // The value is not repeated: somebody may have pasted the key itself.
  throw new NonRetryable(`'privateKeyRef' is no reference; give env:NAME or file:PATH of a keystore`)
}

function keyFromEnvironment(name: string, { environment }: KeyParts): PrivateKey {
  const value = environment[name]
  if (value === undefined) throw new NonRetryable(`the environment has no variable ${name}, which should hold the key`)
  const [, digits] = KEY.exec(value.trim()) ?? []
  if (digits === undefined) throw new NonRetryable(`the variable ${name} holds no private key of 64 hex digits`)
  return `0x${digits.toLowerCase()}`
}

async function keyFromFile(place: string, { environment, log }: KeyParts): Promise<PrivateKey> {
  const [file = '', passwordName] = place.split('#')
  const password = environment[passwordName ?? PASSWORD_NAME]
  if (password === undefined) {
    // A name that was given is not repeated: somebody may have pasted the password itself.
    const name = passwordName === undefined ? PASSWORD_NAME : `with the name after '#'`
    throw new NonRetryable(`the environment has no variable ${name}, for the password of the keystore ${file}`)
  }
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new NonRetryable(
      `the keystore ${file} cannot be read (${String(fieldOf(error, 'code'))}); check its path and permissions`,
    )
  })
  const { mode } = await stat(file)
  if ((mode & 0o077) !== 0) {
    log.warn('The keystore can be read by other users; chmod 600 it', { file, mode: (mode & 0o777).toString(8) })
  }
  const keystore = parseKeystore(text, file)
  return decrypt(keystore, password, file)
}

const hex = z.string().regex(/^(?:[0-9a-fA-F]{2})*$/)
const keystoreSchema = z.object({
  version: z.literal(3),
  crypto: z.object({
    cipher: z.literal('aes-128-ctr'),
    cipherparams: z.object({ iv: hex }),
    ciphertext: hex,
    mac: hex,
    kdf: z.enum(['scrypt', 'pbkdf2']),
    kdfparams: z.record(z.string(), z.unknown()),
  }),
})
const scryptParams = z.object({
  n: z.int().min(2),
  r: z.int().min(1),
  p: z.int().min(1).max(16),
  dklen: z.literal(32),
  salt: hex,
})
const pbkdf2Params = z.object({
  c: z.int().min(1).max(PBKDF2_ROUNDS_MAX),
  prf: z.literal('hmac-sha256'),
  dklen: z.literal(32),
  salt: hex,
})

type Keystore = z.infer<typeof keystoreSchema>

function parseKeystore(text: string, file: string): Keystore {
  let json: unknown
  try {
    // Some programs write "Crypto".
    json = JSON.parse(text, (_name, value: unknown) => lowerCrypto(value))
  } catch {
    throw new NonRetryable(`the keystore ${file} is not JSON`)
  }
  const parsed = keystoreSchema.safeParse(json)
  if (parsed.success) return parsed.data
  throw new NonRetryable(`${file} is no v3 keystore with aes-128-ctr; export the key again with your wallet`)
}

function lowerCrypto(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('Crypto' in value)) return value
  const { Crypto: crypto, ...rest } = value
  return { ...rest, crypto }
}

async function decrypt({ crypto }: Keystore, password: string, file: string): Promise<PrivateKey> {
  const derived = await deriveKey(crypto, password, file)
  const ciphertext = Buffer.from(crypto.ciphertext, 'hex')
  const { viem } = await loadViem()
  const mac = Buffer.from(viem.keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext]), 'bytes'))
  const expected = Buffer.from(crypto.mac, 'hex')
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) {
    throw new NonRetryable(`the password does not open the keystore ${file}, or the file is damaged`)
  }
  const decipher = createDecipheriv('aes-128-ctr', derived.subarray(0, 16), ivOf(crypto, file))
  const key = Buffer.concat([decipher.update(ciphertext), decipher.final()])
  if (key.length !== 32) throw new NonRetryable(`the keystore ${file} holds no key of 32 bytes`)
  return `0x${key.toString('hex')}`
}

function ivOf(crypto: Keystore['crypto'], file: string): Buffer {
  const iv = Buffer.from(crypto.cipherparams.iv, 'hex')
  if (iv.length !== 16) throw new NonRetryable(`${file} is no v3 keystore: its iv has ${iv.length} bytes, not 16`)
  return iv
}

async function deriveKey({ kdf, kdfparams }: Keystore['crypto'], password: string, file: string): Promise<Buffer> {
  switch (kdf) {
    case 'scrypt': {
      const { success, data } = scryptParams.safeParse(kdfparams)
      if (!success || data.n * data.r * 128 > SCRYPT_MEMORY_MAX) throw badKdf(file, kdf)
      const maxmem = data.n * data.r * 128 + 128 * data.r * data.p + (1 << 20)
      return deriveScrypt(password, Buffer.from(data.salt, 'hex'), { N: data.n, r: data.r, p: data.p, maxmem }).catch(
        () => {
          throw badKdf(file, kdf)
        },
      )
    }
    case 'pbkdf2': {
      const { success, data } = pbkdf2Params.safeParse(kdfparams)
      if (!success) throw badKdf(file, kdf)
      return promisify(pbkdf2)(password, Buffer.from(data.salt, 'hex'), data.c, 32, 'sha256')
    }
    default:
      throw kdf satisfies never
  }
}

function deriveScrypt(
  password: string,
  salt: Buffer,
  options: { readonly N: number; readonly r: number; readonly p: number; readonly maxmem: number },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, 32, options, (error, key) => (error === null ? resolve(key) : reject(error)))
  })
}

function badKdf(file: string, kdf: string): NonRetryable {
  return new NonRetryable(`the ${kdf} parameters of the keystore ${file} are invalid or too costly`)
}

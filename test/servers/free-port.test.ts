import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { freePort, onFreePort } from './free-port.ts'

test('a server whose port was taken meanwhile starts on another one, and what never starts fails', async () => {
  const tried: number[] = []
  const [server, port] = await onFreePort(async (free) => {
    tried.push(free)
    if (tried.length < 3) throw new Error('the address is in use')
    const started = createServer().listen(free, '127.0.0.1')
    await once(started, 'listening')
    return started
  })
  assert.deepEqual([tried.length, tried.at(-1)], [3, port])
  server.close()
  await assert.rejects(
    onFreePort(() => Promise.reject(new Error('never'))),
    /never/,
  )
})

test('ports are below those of outgoing connections', async () => {
  for (let count = 0; count < 20; count += 1) {
    const port = await freePort()
    assert.ok(port >= 15_000 && port < 32_768, `${port}`)
  }
})

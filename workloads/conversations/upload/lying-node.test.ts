import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, beforeEach, test } from 'node:test'
import { uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { answerWith, type RpcCall, type RpcRelay, refuseWith, startRpcRelay } from '../../../test/servers/rpc-relay.ts'

let anvil: Anvil
let relay: RpcRelay
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing !== false) return
  anvil = await startAnvil()
  relay = await startRpcRelay(anvil.url)
})
beforeEach(() => {
  if (anvilMissing === false) relay.disturb = null
})
after(async () => {
  await relay?.stop()
  await anvil?.stop()
})

const postponed = { code: 'ERR_POSTPONED' }
const offline = { code: 'ERR_OFFLINE' }
const send = 'eth_sendRawTransaction'

/** A scene whose node is the relay. */
const relayed = (t: Parameters<typeof uploadScene>[0]) => uploadScene(t, anvil, { settings: { rpcUrl: relay.url } })

type Disturb = (call: RpcCall, response: ServerResponse) => unknown

const BROKEN: readonly (readonly [what: string, answer: Disturb])[] = [
  ['HTML', (_call, response) => response.writeHead(200).end('<html>secret-text</html>')],
  ['a status of 500', (_call, response) => response.writeHead(500).end('secret-text')],
  ['nothing', (_call, response) => response.writeHead(200).end()],
  ['null', (_call, response) => response.writeHead(200).end('null')],
  ['an object without a result', (call, response) => response.end(JSON.stringify({ id: call.id }))],
  ['an empty result', (call, response) => answerWith(response, call, '')],
  ['an object as its result', (call, response) => answerWith(response, call, { secret: 'secret-text' })],
  ['the answer to another call', (call, response) => answerWith(response, { id: call.id + 1 }, '0x7a69')],
  ['five million characters', (call, response) => answerWith(response, call, `0x${'0'.repeat(5_000_000)}`)],
]

for (const method of ['eth_chainId', 'eth_call', 'eth_getTransactionByHash', send]) {
  // B76 X099
  test(`a node that answers ${method} with nonsense: an ordinary retry, and one record`, skip, async (t) => {
    const scene = await relayed(t)
    const id = scene.addLearning()
    if (method === 'eth_getTransactionByHash') await assert.rejects(scene.run(id), postponed)
    for (const [what, answer] of BROKEN) {
      relay.disturb = (call, response) => {
        if (call.method !== method) return false
        answer(call, response)
        return true
      }
      await assert.rejects(scene.run(id), (error: Error) => {
        assert.equal(Reflect.get(error, 'code'), undefined, `${what}: ${error.message}`)
        assert.doesNotMatch(error.message, /secret-text/)
        return true
      })
    }
    relay.disturb = null
    await scene.finish(id)
    assert.deepEqual([(await scene.events(id)).length, scene.transactions(id).length], [1, 1])
  })
}

// X101
test(
  'a node that is overloaded, limits the rate or breaks off is waited for without using an attempt',
  skip,
  async (t) => {
    const scene = await relayed(t)
    const id = scene.addLearning()
    const busy: readonly Disturb[] = [
      (_call, response) => response.writeHead(429, { 'retry-after': '7' }).end(),
      (_call, response) => response.writeHead(503).end('<html>'),
      (_call, response) =>
        response.writeHead(200, { 'content-length': '100' }).write('{"jsonrpc"', () => response.destroy()),
      (_call, response) => response.destroy(),
      (call, response) => refuseWith(response, call, { code: -32_005, message: 'daily request count exceeded' }),
      (call, response) => refuseWith(response, call, { code: 429, message: 'Your app has exceeded its compute units' }),
      (call, response) => refuseWith(response, call, { code: -32_000, message: 'too many requests' }),
    ]
    for (const answer of busy) {
      for (const method of ['eth_chainId', send]) {
        relay.disturb = (call, response) => call.method === method && answer(call, response) !== null
        await assert.rejects(scene.run(id), offline)
      }
    }
    relay.disturb = null
    await scene.finish(id)
    assert.deepEqual([(await scene.events(id)).length, scene.transactions(id).length], [1, 1])
  },
)

/** What other programs than geth say for the same. */
const SAID: readonly (readonly [message: string, wait: RegExp])[] = [
  ['AlreadyKnown', /not mined yet/],
  ['Known transaction', /not mined yet/],
  ['FeeTooLow, MaxFeePerGas too low', /fees .* too low/],
  ['Gas price below configured minimum gas price', /fees .* too low/],
  ['InsufficientFunds, Account balance: 0', /cannot pay/],
  ['Upfront cost exceeds account balance', /cannot pay/],
  ['txpool is full', /takes no more transactions/],
  ['OldNonce, Current nonce: 1', /on its way/],
]

for (const [message, wait] of SAID) {
  // X099 X101
  test(`a node that answers '${message}' to a transaction is understood`, skip, async (t) => {
    const scene = await relayed(t)
    const id = scene.addLearning()
    relay.disturb = (call, response) => {
      if (call.method === 'eth_getTransactionByHash' && wait.source.includes('mined'))
        return answerWith(response, call, { hash: call.params[0] })
      return call.method === send && refuseWith(response, call, { code: -32_000, message })
    }
    await assert.rejects(scene.run(id), { ...postponed, message: wait })
    relay.disturb = null
    await scene.finish(id)
    assert.deepEqual([(await scene.events(id)).length, scene.transactions(id).length], [1, 1])
  })
}

// X100
test('a head of before a reorganisation to a shorter chain does not count as depth', skip, async (t) => {
  const scene = await relayed(t)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), postponed)
  await anvil.mine(1)
  // The chain becomes nine blocks shorter just before the event is read.
  let isShorter = false
  relay.disturb = async (call, response) => {
    if (call.method === 'eth_getLogs') isShorter = true
    if (call.method !== 'eth_blockNumber' || isShorter) return false
    return answerWith(response, call, `0x${(Number(await anvil.call('eth_blockNumber')) + 9).toString(16)}`)
  }
  await assert.rejects(scene.run(id), { ...postponed, message: '0 of 2 confirmations' })
  assert.equal(scene.row(id)?.status, 'tx_submitted')
})

// X099
test('a node behind the others, which does not know the record, causes no second transaction', skip, async (t) => {
  const scene = await relayed(t)
  const [id, unknown] = [scene.addLearning(), scene.addLearning('Another.')]
  await assert.rejects(scene.run(id), postponed)
  await anvil.mine(5)
  const behind = Number(await anvil.call('eth_blockNumber')) - 5
  relay.disturb = async (call, response) => {
    const [first, tag] = call.params
    if (call.method === 'eth_getTransactionReceipt') return answerWith(response, call, null)
    if (call.method === 'eth_estimateGas') return answerWith(response, call, '0x186a0')
    if (call.method !== 'eth_call') return false
    if (tag === 'latest')
      return answerWith(response, call, await anvil.call('eth_call', [first, `0x${behind.toString(16)}`]))
    return refuseWith(response, call, { code: -32_000, message: 'header not found' })
  }
  await assert.rejects(scene.run(id), postponed)
  assert.deepEqual([scene.transactions(id).length, scene.transactions(unknown).length], [1, 0])
  relay.disturb = null
  await scene.finish(id)
  assert.equal((await scene.events(id)).length, 1)
})

// X099
test('a node that estimates too little gas costs three failed transactions at most', skip, async (t) => {
  const scene = await relayed(t)
  const id = scene.addLearning()
  relay.disturb = (call, response) => call.method === 'eth_estimateGas' && answerWith(response, call, '0x7530')
  await assert.rejects(scene.finish(id), { code: 'ERR_NON_RETRYABLE', message: /3 transactions .* failed/ })
  assert.deepEqual([(await scene.events(id)).length, scene.transactions(id).length], [0, 3])
})

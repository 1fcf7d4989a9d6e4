import type { HostPort } from '../hosts.ts'

/** A node as `CLUSTER NODES` of some node describes it. */
export interface Member extends HostPort {
  readonly id: string
  /** Null for a primary. */
  readonly primaryId: string | null
  /** Held for dead by the majority, or left. */
  readonly isFailed: boolean
  /** Of two nodes that claim a slot, the one with the higher epoch has it. */
  readonly epoch: number
  readonly slots: readonly (readonly [from: number, to: number])[]
}

/**
 * Reads `CLUSTER NODES`. A node knows no address of its own before others have told it, so `asked` stands in.
 * `usesNames`: TLS verifies the name of a server where it has announced one.
 */
export function parseMembers(text: string, asked: HostPort, usesNames: boolean): readonly Member[] {
  return text
    .split('\n')
    .map((line) => line.trim().split(' '))
    .filter((parts) => parts.length >= 8 && !/noaddr|handshake/.test(parts[2] ?? ''))
    .map((parts) => toMember(parts, asked, usesNames))
}

function toMember(parts: readonly string[], asked: HostPort, usesNames: boolean): Member {
  const [id = '', address = '', flags = '', primary = '-', , , epoch = '0', , ...ranges] = parts
  const [, host = '', port = '0', name = ''] = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(address) ?? []
  const told = usesNames && name !== '' ? name : host
  return {
    id,
    host: told === '' ? asked.host : told,
    port: Number(port),
    primaryId: primary === '-' ? null : primary,
    isFailed: flags.split(',').includes('fail'),
    epoch: Number(epoch),
    // `[slot->-id]` is a slot that is on its way to another node.
    slots: ranges.flatMap((range) => {
      const found = /^(\d+)(?:-(\d+))?$/.exec(range)
      return found === null ? [] : [[Number(found[1]), Number(found[2] ?? found[1])] as const]
    }),
  }
}

/** Who has the slot, by the newest claim in any node's view. */
export function ownerIn(views: readonly (readonly Member[])[], slot: number): Member | null {
  let owner: Member | null = null
  for (const member of views.flat()) {
    const hasSlot = member.slots.some(([from, to]) => from <= slot && slot <= to)
    if (hasSlot && (owner === null || member.epoch > owner.epoch)) owner = member
  }
  return owner
}

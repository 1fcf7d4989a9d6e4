/** Which addresses a webhook may be sent to: public unicast, as the registries of IANA list it. */
import { BlockList, isIP, isIPv4 } from 'node:net'

const FORBIDDEN_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
]
/** All of IPv6 that is routed today. */
const GLOBAL_V6 = '2000::/3'
/** Parts of it that are not for hosts, or that carry an IPv4 address inside (Teredo, 6to4). */
const FORBIDDEN_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

function listOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', bits] = range.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

const forbiddenV4 = listOf(FORBIDDEN_V4, 'ipv4')
const globalV6 = listOf([GLOBAL_V6], 'ipv6')
const forbiddenV6 = listOf(FORBIDDEN_V6, 'ipv6')

/**
 * Whether an address is public. Everything else is refused: loopback, private and link-local networks, carrier-grade NAT,
 * multicast, documentation, and every IPv6 form that carries an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo).
 *
 * @example
 * isPublicAddress('::ffff:127.0.0.1') // false
 */
export function isPublicAddress(address: string): boolean {
  // A zone, as in fe80::1%eth0, belongs to link-local addresses only.
  if (isIP(address) === 0 || address.includes('%')) return false
  if (isIPv4(address)) return !forbiddenV4.check(address, 'ipv4')
  return globalV6.check(address, 'ipv6') && !forbiddenV6.check(address, 'ipv6')
}

/** Names that mean this machine or this network, whatever the resolver says. */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa|localdomain)$/

/** The reason against a host name or literal address of a parsed URL; null when only its addresses can decide. */
export function reasonAgainstHost(hostname: string): string | null {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase()
  if (host === '') return 'it has no host'
  if (isIP(host) !== 0) return isPublicAddress(host) ? null : 'its address is not public'
  if (LOCAL_NAME.test(host)) return 'its name is local'
  return host.includes('.') ? null : 'its name has no domain'
}

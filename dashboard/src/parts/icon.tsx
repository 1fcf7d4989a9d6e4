/** Line icons on a grid of 16. They accompany text and are hidden from screen readers. */
const PATHS = {
  overview: 'M2 10.5c2-2 4-2 6 0s4 2 6 0M2 6c2-2 4-2 6 0s4 2 6 0',
  jobs: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  'dead-letters': 'M2.5 4h11v8h-11zM2.5 4.5l5.5 4 5.5-4',
  workers:
    'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4',
  schedules: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.8V8l2.2 1.6',
  queues: 'M2 4.5h8M2 8h8M2 11.5h8M12 6l2 2-2 2',
  topics: 'M3 3.5v9M8 6v6.5M13 8.5v4',
  tables: 'M2.5 3h11v10h-11zM2.5 6.5h11M6.5 6.5V13',
  webhooks:
    'M4 9.5a2.5 2.5 0 1 0 2.4 3.2H11M8 5.5l-2.6 4.6M10.5 4.3A2.5 2.5 0 1 0 6.4 6.4M8.6 5.6l2.3 4M12 8.6a2.5 2.5 0 1 1-1 4.2',
  alerts: 'M8 2a4 4 0 0 1 4 4c0 3.5 1.5 4.5 1.5 5.5h-11C2.5 10.5 4 9.5 4 6a4 4 0 0 1 4-4zM6.8 13.8c.6.7 1.8.7 2.4 0',
  audit: 'M4 2h6l2.5 2.5V14H4zM6.5 7h4M6.5 10h4',
  check: 'M3 8.5l3.2 3.2L13 5',
  cross: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  pause: 'M5.5 4v8M10.5 4v8',
  play: 'M5 3.5l7 4.5-7 4.5z',
  again: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  warn: 'M8 2.5L14.5 13.5h-13zM8 6.5v3.2M8 11.4v.4',
  dot: 'M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  clock: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.8V8l2.2 1.6',
  bin: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.7 9h5.6l.7-9',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  half: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3l3.2 3.2',
  plus: 'M8 3v10M3 8h10',
  key: 'M5 8.5a2.5 2.5 0 1 0 0 .1zM5 8.5h8.5M11 8.5v2.5',
  undo: 'M3 6.5h6.5a3.5 3.5 0 0 1 0 7H7M5.5 4L3 6.5 5.5 9',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

export function Wheel() {
  return (
    <svg class="wheel" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <g class="wheel-turning">
        <circle cx="16" cy="13" r="9" />
        <path d="M16 1.5v23M4.5 13h23M7.9 4.9l16.2 16.2M24.1 4.9L7.9 21.1" />
      </g>
      <path class="wheel-water" d="M1.5 28.5c3-2.6 5.8-2.6 8.7 0s5.8 2.6 8.7 0 5.8-2.6 8.7 0" />
    </svg>
  )
}

import { render } from 'preact'
import { App } from './app.tsx'
import { applyTheme, readTheme } from './parts/theme.ts'
import './style/index.css'

applyTheme(readTheme())
const app = document.querySelector('#app')
if (app !== null) render(<App />, app)

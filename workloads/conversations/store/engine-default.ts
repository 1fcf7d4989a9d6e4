/** When neither `--engine` nor `MILLRACE_ENGINE` names one. */
export const CONVERSATIONS_ENGINE = 'sqlite:~/.millrace/conversations.db'

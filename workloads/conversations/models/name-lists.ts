/** Word lists for names of people, in lower case. They are small on purpose: what they miss, a language model can find. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

export const FIRST_NAMES = words(`
  aaron abdul abigail adam adrian agnes ahmed aisha alan albert alberto alejandro alessandro alex alexander alexandra alexis alfred
  ali alicia alina alison amanda amelia amir amit amy ana andrea andreas andres andrew andrey angela anika anil anita anna anne annika
  anthony antonio anya arjun arthur arun ashley astrid barbara beatrice ben benjamin bernard beth bianca birgit bjorn bogdan boris brandon
  brenda brian bruno caleb camille carla carlos carmen caroline catherine cecilia charles charlotte chen chiara chloe christian christina
  christine christopher claire clara claudia colin connor craig cynthia daniel daniela danielle david deborah deepak denis dennis derek
  diana diego dieter dimitri dmitri dmitry dominic donald dorothy douglas eduardo edward eileen elena eleanor elias elif elizabeth ella
  emily emma emre enrique eric erik esther eugene eva evelyn fabian fatima felipe felix fernando fiona florian francesca francesco
  francis francisco francois frederik gabriel gabriela gareth gary george gerald gerhard giovanni giulia gloria gonzalo gordon greg
  gregory guillaume gustav hannah hans harald harold harry hassan heather heidi heinrich helen helena helga henry hiroshi howard hugo
  ian ibrahim igor ines ingrid irene isaac isabel isabella ivan jack jacob jacqueline james jamie jan jane janet jason javier jean
  jeffrey jennifer jeremy jessica jesus joan joanna joao joe joel johan johann johannes john jonas jonathan jorge jose josef joseph
  joshua juan judith jurgen justin kaito karen karin karl katarzyna kate katherine kathleen katrin kavita keith kelly kenji kenneth
  kevin khalid kimberly klaus kofi konrad kristen kristina kumar kurt kyle lars laura lauren laurent leila lena leon leonard leonardo
  linda lindsay lisa liam lorenzo louis louise lucas lucia ludwig luis luisa lukas luke lydia maja magdalena manuel marcel marco marcus
  margaret maria mariam marie marina mario marta martha martin martina mary mateo mathias mathieu matteo matthew matthias maurice megan
  mehmet mei melanie melissa michael michaela michel michelle miguel mikhail mina mohamed mohammed monica monika muhammad nadia nancy
  naomi natalia natalie natasha nathan neha nicholas nicola nicolas nicole nigel nikhil nikolai nina noah olga oliver olivia omar oscar
  pablo pamela patricia patrick paul paula pauline pavel pedro peter petra philip philipp pierre piotr priya rachel rafael rahul raj rajesh
  ralf ralph ramon raphael rebecca reinhard renate ricardo richard robert roberto rodrigo roger roland ronald rosa rosemary rudolf russell
  ruth ryan sabine sabrina salma samantha samira samuel sandeep sandra sanjay sara sarah sebastian sergei sergey sergio sharon shreya
  silke simon simone sofia sonia sophia sophie stefan stefanie stella stephanie stephen steven stuart sunil susan susanne suresh sven
  svetlana tamara tanja tariq tatiana teresa theodore theresa thomas thorsten tiago timothy tobias tomasz tony ulrich ursula valentina
  valerie vanessa vera veronica victor victoria vijay vikram vincent vladimir walter wanda wei werner wilhelm william wojciech wolfgang
  xavier yasmin yuki yuri yusuf yvonne zainab zhang zoe zofia`)

/** First names that are words or tools as well: they count only before a surname of the list. */
export const AMBIGUOUS_FIRST_NAMES = words(`
  art bill chase dean drew frank gene grace grant guy harper hope jay josh kay lane max miles nick olive pat ray rich rob rose sky sue
  summer tim tom will mark may june april autumn dawn eve faith joy ruby sandy scott sam dan don bob alice ada julia travis carl dave mike
  jim steve chris`)

export const SURNAMES = words(`
  adams ahmed alvarez anderson andersson bailey baker bauer becker bennett bergmann bianchi brooks brown bryant butler campbell carter
  castillo chatterjee chen chowdhury clark collins cooper costa cruz davies davis diaz doe dubois edwards eriksson evans fernandez ferrari
  fischer flores foster garcia gomez gonzalez green griffin gupta gutierrez hall hansen harris hartmann hayes henderson hernandez hill
  hoffmann hofmann howard huber hughes ivanov iyer jackson jansen jenkins jensen jimenez johansson johnson jones kapoor kaufmann keller
  kelly khan kim klein koch kovacs kowalski kozlov kruger kumar lange larsson lee lehmann lewis lopez maier marino martin martinez
  mayer mcdonald mehta meier mendoza meyer miller mitchell moore morales moreau morgan morris muller mueller murphy murray nakamura
  nelson nguyen nielsen nilsson novak o'brien okafor okonkwo olsen ortiz parker patel pereira perez petrov pham phillips popescu powell
  ramirez ramos rao reddy reed reyes reynolds richardson richter rivera roberts robinson rodriguez rogers romano rossi russo ruiz sanchez
  sanders santos sato schmidt schmitt schneider schroeder schulz schwarz sharma silva singh smirnov smith sokolov stewart sullivan suzuki
  svensson takahashi tanaka taylor thomas thompson torres tran turner vargas vasquez vogel volkov wagner walker wallace wang ward watson
  weber weiss werner white williams wilson wolf wong wood wright yamamoto yang yilmaz young zhang zimmermann zhou`)

/** Words that stand beside a first name in an identifier without being a surname. */
export const IDENTIFIER_WORDS = words(`
  account action address admin agent app api array auth backup bar base bin bot box branch bucket build bug cache card cert channel chat
  check class client cloud cluster code comment commit component config connection container context control copy count credentials cron
  data database date db debug default demo dev device dir doc docs document dot draft email engine env error event example extension field file
  fix flag folder foo form function graph group handler hash help helper home hook host http id image import index info init input instance int
  integration issue item java job json key label lambda laptop library line link linux list local lock log login mail main map message method
  migration mobile mock mode model module name network node note notes null number object old option order org output owner package page param
  password patch path payload permission phone pipeline plugin pod policy port private prod product profile project proxy public query queue
  release remote repo report request response result review role route rule run sample schema score script secret section server service
  session set setting settings setup size source spec sql ssh staging stage state status storage store story stream string struct style
  stub system table tag team temp template test tests text thread ticket time timer tmp todo token tool total tree type upload url user
  username users util value var variable vector version view wallet web widget wiki window work worker workflow workspace wrapper write
  script scripts js ts py css html xml yaml yml md txt csv the and for with from was has is are not new get set can`)

/** What is taken for a person and is a tool, a product or an example in a text about programs. */
export const TOOL_NAMES = words(`
  ada aaron alexa alice alpine amber angular ansible apollo argo astro athena atlas aurora avro azure babel bamboo bazel bison bob carol cassandra celery
  charles chef claude clippy cloudflare consul copilot cucumber cypress dagger dapper dart dask dave delphi deno django docker drew drupal
  druid elixir elm ember erlang eve express faker falcon fastify flink flask fortran gatsby gemini gherkin git gitea github gitlab
  godot gradle grafana grace groovy grok grunt hadoop harbor haskell helm hermes heroku hudson iris istio jade jasmine java jekyll jenkins
  jest jira joomla julia jupyter kafka karma keras kibana kotlin kubernetes laravel lerna linus llama lua luigi luna maria mariadb markdown
  marvin mastodon maven max mercury milvus mistral mocha mongo mongoose monty moss mysql netlify next nginx nim nomad nora nuxt oban
  ollama oracle otto pandas parcel pascal pearl perl phoenix pino playwright poetry polly postgres prefect preact prettier prisma prometheus puppet
  puma pulsar python qwen rake ray react redis redux remix rocket rollup rome ruby rust sage salt sanic sass scala selenium sentinel sentry
  sequel sidekiq sinatra siri sonar sonarqube sphinx spring sqlite stan stella stencil storybook svelte swift symfony tailwind temporal terraform thanos
  tiger titan tomcat travis trixie turing typescript unity vagrant vault vercel victor viper vite vue webpack wendy winston wordpress yarn
  zig zod zookeeper`)

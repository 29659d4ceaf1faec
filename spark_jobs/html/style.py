"""Light, dark, printed and narrow. Colours are variables; what a picture uses is a class."""

STYLE = """
:root{--bg:#fcfbf8;--card:#fff;--ink:#1c1b19;--soft:#5f5b54;--rule:#e4e0d8;--accent:#245e8c;
--c1:#2a648f;--c2:#bd4f1d;--c3:#3d7a4a;--c4:#7b4f9d;--c5:#8a6a12;--c6:#55606b;
--h0:#e2e9ef;--h1:#a8c3d9;--h2:#f6d494;--h3:#eda64f;--h4:#da6128;--h5:#951b1b;
--bad:#951b1b;--bad-ink:#fff;--warn:#f3cd86;--warn-ink:#40290a;--note:#dbe6ef;--note-ink:#173f5f;
--fine:#dcebdd;--fine-ink:#1d4d28;--mark:#951b1b}
@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light]){DARK}}
@media screen{:root[data-theme=dark]{DARK}}
*{box-sizing:border-box}
html{color-scheme:light dark;scroll-padding-top:7rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:1040px;margin:0 auto;padding:0 40px}
header{display:flex;flex-wrap:wrap;align-items:center;gap:4px 16px;padding-top:34px}
header .name{flex:1}
h1{font-size:27px;line-height:1.2;margin:0;letter-spacing:-.01em}
header p,.about{color:var(--soft);margin:4px 0 0}
nav{flex-basis:100%;display:flex;flex-wrap:wrap;gap:2px 4px;padding:10px 0;margin-top:12px;
border-bottom:1px solid var(--rule);border-top:1px solid var(--rule)}
nav a{color:var(--ink);text-decoration:none;padding:4px 10px;border-radius:6px}
nav a:hover{background:var(--note);color:var(--note-ink)}
a:focus-visible,button:focus-visible,.chart:focus-visible,.scroll:focus-visible,summary:focus-visible
{outline:2px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--card);padding:8px}
#theme{font:inherit;font-size:13px;color:var(--ink);background:var(--card);cursor:pointer;
border:1px solid var(--rule);border-radius:6px;padding:4px 12px}
section{margin-top:34px}
main>section+section:not(.findings){border-top:1px solid var(--rule);padding-top:26px}
h2{font-size:21px;line-height:1.25;margin:0}
h3{font-size:16px;margin:0 0 2px}
article{margin-top:30px}
article>p{color:var(--soft);margin:0 0 10px;max-width:72ch}
.findings ul{list-style:none;margin:12px 0 0;padding:0}
.findings li{display:flex;gap:12px;align-items:baseline;padding:7px 0;
border-top:1px solid var(--rule)}
.findings li:first-child{border-top:0}
.findings summary{cursor:pointer;color:var(--accent);padding:8px 0}
.findings .badge{min-width:58px;flex:none;text-align:center}
.figures{list-style:none;display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));
gap:12px;margin:18px 0 0;padding:0}
.figures li{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:13px 16px}
.figures strong{display:block;font-size:23px;line-height:1.3;letter-spacing:-.01em}
.figures span{color:var(--soft);font-size:13px}
.badge{display:inline-block;border-radius:10px;padding:1px 9px;font-size:12.5px;font-weight:600;
white-space:nowrap}
.bad{background:var(--bad);color:var(--bad-ink)}.warn{background:var(--warn);color:var(--warn-ink)}
.note{background:var(--note);color:var(--note-ink)}.fine{background:var(--fine);color:var(--fine-ink)}
.chart,.scroll{overflow-x:auto}
.chart svg{display:block;width:100%;min-width:680px;height:auto;overflow:visible}
.tick{font-size:11.5px;fill:var(--soft);text-anchor:middle}
.tick.end{text-anchor:end}.tick.start{text-anchor:start}.tick.name{fill:var(--ink)}
.tick.warn{fill:var(--bad);background:none}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--soft)}
.line{fill:none;stroke-width:1.5;stroke-linejoin:round}
.band{opacity:.16;stroke:none}.bar{opacity:.85}.bar:hover{opacity:1}
.limit{stroke:var(--bad);stroke-dasharray:5 4}
.mark{fill:var(--mark);opacity:.2}
.hit rect{fill:transparent}.hit rect:hover{fill:var(--ink);fill-opacity:.08}
.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}
.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}
.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
.f6{fill:var(--c6)}
.tick.t1{fill:var(--c1)}.tick.t2{fill:var(--c2)}.tick.t3{fill:var(--c3)}.tick.t4{fill:var(--c4)}
.tick.t5{fill:var(--c5)}.tick.t6{fill:var(--c6)}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}
.h5{fill:var(--h5)}
.k0{background:var(--h0)}.k1{background:var(--h1)}.k2{background:var(--h2)}.k3{background:var(--h3)}
.k4{background:var(--h4)}.k5{background:var(--h5)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;margin:4px 0 0;padding:0;
font-size:13px;color:var(--soft)}
.key{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:6px;
vertical-align:-1px}
.spark{width:120px;height:22px;display:block}
table{border-collapse:collapse;width:100%;font-size:14px}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.scroll{position:relative}
th,td{padding:6px 8px;text-align:left;border-bottom:1px solid var(--rule);font-weight:400}
tbody th{white-space:nowrap}
thead th{color:var(--soft);font-size:13px;vertical-align:bottom;white-space:nowrap}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer}
thead button:hover{color:var(--ink);text-decoration:underline}
th[aria-sort=ascending] button:after{content:" \\2191"}
th[aria-sort=descending] button:after{content:" \\2193"}
tbody tr:hover{background:color-mix(in srgb,var(--note) 40%,transparent)}
.left-out,.none{color:var(--soft);font-size:13px}
footer{color:var(--soft);font-size:13px;margin-top:44px;padding-bottom:32px}
@media (max-width:700px){header,main,footer{padding-left:16px;padding-right:16px}
h1{font-size:22px}.figures{grid-template-columns:1fr 1fr}.figures strong{font-size:19px}
nav{flex-wrap:nowrap;overflow-x:auto}nav a{white-space:nowrap}}
@media print{@page{margin:14mm}#theme,nav,.skip{display:none}header,main,footer{padding:0}
:root{--bg:#fff}body{font-size:11px;print-color-adjust:exact;
-webkit-print-color-adjust:exact}
article,.figures li,tr{break-inside:avoid}.chart,.scroll{overflow:visible}
.chart svg{min-width:0}.hit{display:none}}
""".replace(
    "{DARK}",
    "{--bg:#16181b;--card:#1e2125;--ink:#ebe9e4;--soft:#a9a69e;--rule:#33373d;--accent:#86b9e0;"
    "--c1:#74aeda;--c2:#ee8f5e;--c3:#84c491;--c4:#c19ade;--c5:#d9b659;--c6:#a9b3bd;"
    "--h0:#263039;--h1:#3b5a74;--h2:#8a6a2a;--h3:#c07a25;--h4:#e06a30;--h5:#ff5c4d;"
    "--bad:#c4372d;--bad-ink:#fff;--warn:#6b4d17;--warn-ink:#ffe3ae;--note:#23405a;"
    "--note-ink:#cfe5f7;--fine:#234a2d;--fine-ink:#cdeed3;--mark:#ff6a5c}",
).strip()

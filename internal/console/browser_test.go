package console

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What an operator sees and does, in a real browser: the list, a pool that moves, a pause with a reason, and its end.
func TestConsoleInABrowser(t *testing.T) {
	store := newCounted()
	const evil = `<img src=x onerror=document.title='evil'>`
	a := join(t, store, "orders/in", "pod-0", "1 0 600 60000000 0 0 w:3 u:500 why:limit", driver.Whole/2)
	join(t, store, "orders/in", evil, "1 0 900 60000000 0 0", driver.Whole/4)
	join(t, store, evil+"#?&%", "pod-0", "1 n:30 w:2 u:1000 why:in_flight", driver.Whole)
	_, c := serveEvery(t, store, token, 100*time.Millisecond)
	p := chromium(t, c.url, size{width: 1000, height: 900})

	p.until(t, `!document.getElementById("locked").hidden`)
	require.Equal(t, "true", p.eval(t, `document.getElementById("list").hidden`), "nothing is shown before the login")
	p.until(t, `document.getElementById("d-login").open`) // the form is there at once
	p.click(t, "#d-login [data-close]")
	p.click(t, "#login")
	p.eval(t, `document.querySelector("#d-login [name=by]").value = "ann"; document.querySelector("#d-login [name=token]").value = "wrong"`)
	p.click(t, "#d-login .main")
	p.until(t, `document.querySelector("#d-login .error").innerText === "the token is wrong"`)
	p.eval(t, `document.querySelector("#d-login [name=token]").value = "`+token+`"`)
	p.eval(t, `document.querySelector("#d-login [name=token]").focus()`)
	p.key(t, "Enter")
	p.text(t, "count", "2 pools")
	p.text(t, "logout", "Log out ann")
	p.text(t, "pools", "30 calls in flight")
	p.text(t, "pools", "disagree")
	p.text(t, "live", "live")

	// A pool whose name is made to break the page.
	p.eval(t, `[...document.querySelectorAll("#pools a")].find(a => a.innerText.startsWith("<img")).click()`)
	p.text(t, "name", evil+"#?&%")
	p.text(t, "u-granted", "calls in flight")
	p.text(t, "t-granted", "30")
	require.Equal(t, "true", p.eval(t, `document.getElementById("change").hidden`), "calls in flight have no override")
	require.Equal(t, "false", p.eval(t, `document.getElementById("pause").hidden`))

	// What is drawn.
	p.eval(t, `location.hash = "#pool=orders%2Fin"`)
	p.text(t, "limit", "600 per 1m")
	p.text(t, "t-limit", "10")
	p.text(t, "t-granted", "5")
	p.text(t, "t-waiting", "3")
	p.text(t, "banners", "Settings disagree: 600 per 1m (pod-0) counts; 900 per 1m")
	p.until(t, `document.getElementById("line-granted").getTotalLength() > 0 && document.getElementById("line-granted").getBBox().width > 0`)
	require.Equal(t, "true", p.eval(t, `document.getElementById("line-granted").getBBox().y > document.getElementById("line-limit").getBBox().y`),
		"half of the limit is drawn below it")
	require.Equal(t, "true", p.eval(t, `document.querySelectorAll("#shares path").length === 2`))
	part := `document.querySelector("#processors tr:last-child .bar i").offsetWidth / document.querySelector("#processors tr:last-child .bar").offsetWidth`
	p.until(t, `Math.abs(`+part+` - .5) < .02`)
	a.req.Wanted, a.req.InUse = driver.Whole/8, driver.Whole/8
	a.sync(t)
	p.until(t, `Math.abs(`+part+` - .125) < .02`)

	p.text(t, "why", "pod-0 has used its share of ")
	require.Equal(t, "why held", p.eval(t, `document.getElementById("why").className`))
	// A chart begins where there is data.
	begins := `Math.abs(document.getElementById("line-limit").getBBox().x - 52)`
	p.until(t, `samples.length > 3`)
	p.eval(t, `samples[0].at -= 10500`) // a chart of less has room before its beginning
	p.until(t, begins+` < 3`)

	// The keyboard reads the chart.
	p.eval(t, `document.getElementById("chart").focus()`)
	p.key(t, "ArrowLeft")
	p.text(t, "read", " UTC: limit 10, granted 5, waiting 3")

	// A pause needs a reason, is seen, and ends.
	p.click(t, "#pause")
	p.click(t, "#d-pause .main")
	require.Equal(t, "true", p.eval(t, `document.getElementById("d-pause").open`), "a reason is missing")
	p.eval(t, `document.querySelector("#d-pause [name=reason]").value = "night"`)
	p.click(t, "#d-pause .main")
	p.text(t, "banners", "Paused: everything until")
	p.until(t, `/until ([0-9-]{10} )?[0-9:]{8} UTC \(/.test(document.getElementById("banners").innerText)`)
	p.text(t, "why", "paused by ann until ")
	p.click(t, "#pause")
	require.Equal(t, "night", p.eval(t, `document.querySelector("#d-pause [name=reason]").value`), "a form begins with what is in force")
	p.click(t, "#d-pause [data-close]")
	p.text(t, "events", "by ann: night")
	pauses, err := protocol.LoadPauses(t.Context(), store, "orders/in")
	require.NoError(t, err)
	require.Equal(t, "ann", pauses[0].By)
	p.click(t, "#banners .banner.bad button")
	p.text(t, "events", "no longer paused: everything")

	// So does a limit.
	p.click(t, "#change")
	require.Equal(t, "600 60", p.eval(t, `(() => { const f = document.querySelector("#d-limit form"); return f.max.value + " " + f.per.value })()`))
	p.eval(t, `const f = document.querySelector("#d-limit form"); f.max.value = 300; f.per.value = 60; f.reason.value = "a sale"`)
	p.click(t, "#d-limit .main")
	p.text(t, "banners", "Override: 300 per 1m until")
	p.text(t, "t-limit", "5")
	p.click(t, "#change")
	require.Equal(t, "300 60 a sale", p.eval(t, `(() => { const f = document.querySelector("#d-limit form");
		return f.max.value + " " + f.per.value + " " + f.reason.value })()`))
	p.click(t, "#d-limit [data-close]")

	// A pool that is not there shows nothing of the one before, and the store is not away.
	require.Equal(t, "true", p.eval(t, `location.hash = "#pool=nobody"; route(); document.getElementById("detail").hidden`), "before the answer, too")
	p.text(t, "banners", "the store has no record of this pool")
	p.text(t, "live", "live")
	require.Equal(t, "true", p.eval(t, `document.getElementById("detail").hidden && document.getElementById("actions").hidden`))
	require.Empty(t, p.eval(t, `document.getElementById("limit").innerText`))
	p.eval(t, `location.hash = "#pool=orders%2Fin"`)
	p.text(t, "banners", "Override: 300 per 1m until")
	p.until(t, `!document.getElementById("detail").hidden`)

	require.NotContains(t, p.eval(t, "document.title"), "evil")
	require.NotContains(t, p.eval(t, "location.href"), token)
	store.away.Store(true)
	p.text(t, "live", "the store is away")
	p.text(t, "banners", "The store does not answer, and all below is as it was: ")
	store.away.Store(false)
	p.eval(t, `location.hash = ""`)
	p.text(t, "count", "2 pools")
	store.mute.Store(true)
	p.text(t, "count", "as they were when the store answered last")
	require.Equal(t, "2", p.eval(t, `String(document.querySelectorAll("#pools tr").length)`), "they stay in the list")
	p.click(t, "#logout")
	p.until(t, `!document.getElementById("locked").hidden`)
	require.Equal(t, "true", p.eval(t, `document.getElementById("one").hidden`))
	p.until(t, `document.getElementById("d-login").open && document.querySelector("#d-login [name=by]").value === "ann"`)
}

// Pools stand by their state, with its colour, and those that nobody is in are hidden until somebody asks for them.
func TestPoolsByTheirStateInABrowser(t *testing.T) {
	store := newCounted()
	join(t, store, "a-idle", "x", "1 0 400 1000000 0 0", driver.Whole)
	join(t, store, "b-full", "x", "1 0 400 1000000 0 0 w:14 u:996 why:limit h:14", driver.Whole)
	join(t, store, "c-paused", "x", "1 0 400 1000000 0 0", driver.Whole)
	require.NoError(t, protocol.SavePause(t.Context(), store, "c-paused", throttle.Paused{By: "ann"}))
	join(t, store, "d-left", "x", "1 0 400 1000000 0 0", driver.Whole).leave(t)
	_, c := serveEvery(t, store, "", 100*time.Millisecond)
	p := chromium(t, c.url, size{width: 1000, height: 700})
	p.text(t, "count", "3 pools")
	names := `[...document.querySelectorAll("#pools a")].map(a => a.innerText).join(" ")`
	require.Equal(t, "c-paused b-full a-idle", p.eval(t, names))
	require.Equal(t, "broken held usual", p.eval(t, `[...document.querySelectorAll("#pools tr")].map(tr => tr.className).join(" ")`))
	colours := p.eval(t, `[...document.querySelectorAll("#pools .why")].map(e => getComputedStyle(e, "::before").backgroundColor).join(" ")`)
	require.Len(t, map[string]bool{strings.Split(colours, ") ")[0]: true, strings.Split(colours, ") ")[1]: true, strings.Split(colours, ") ")[2]: true}, 3)
	p.text(t, "pools", "paused by ann: numathrottle resume --pool c-paused")
	p.text(t, "pools", "the limit of 400/s is used in full; 14 callers wait")
	p.text(t, "deadlabel", "show 1 that nobody is in")
	p.click(t, "#dead")
	p.text(t, "count", "4 pools")
	require.Equal(t, "c-paused b-full a-idle d-left", p.eval(t, names))
}

// Dark and light follow the system until somebody says otherwise, and a phone has no page beyond its edge.
func TestConsoleOnAPhone(t *testing.T) {
	store := newCounted()
	join(t, store, "orders/pipeline/"+strings.Repeat("enrich", 10), "pod-"+strings.Repeat("0", 60), "1 0 600 60000000 0 0 w:3 u:500", driver.Whole/2)
	join(t, store, "short", "pod", "1 0 600 60000000 0 0", driver.Whole)
	_, c := serveEvery(t, store, "", 100*time.Millisecond)
	p := chromium(t, c.url, size{width: 390, height: 800, dark: true})
	p.text(t, "count", "2 pools")
	dark := p.eval(t, `getComputedStyle(document.body).backgroundColor`)
	require.Equal(t, "rgb(17, 17, 16)", dark)
	fits := `document.documentElement.scrollWidth <= document.documentElement.clientWidth`
	require.Equal(t, "true", p.eval(t, fits), "the list")
	ownLine := `(() => { const td = document.querySelector("%s tr:last-child").children, top = i => td[i].getBoundingClientRect().top
		return top(1) > top(0) && getComputedStyle(td[4], "::before").content !== "none" })()`
	require.Equal(t, "true", p.eval(t, strings.ReplaceAll(ownLine, "%s", "#pools")), "a name has a line of its own, and cells say what they are")
	p.click(t, "#pools a")
	p.text(t, "t-granted", "5")
	require.Equal(t, "true", p.eval(t, fits), "a pool")
	require.Equal(t, "true", p.eval(t, strings.ReplaceAll(ownLine, "%s", "#processors")))
	require.Equal(t, "true", p.eval(t, `document.querySelector("#chart text").getBoundingClientRect().height > 9`), "the words at the chart can be read")
	require.Equal(t, "true", p.eval(t, `document.getElementById("actions").hidden && !document.getElementById("showsonly").hidden`))
	p.click(t, "#theme")
	require.Equal(t, "rgb(244, 244, 241)", p.eval(t, `getComputedStyle(document.body).backgroundColor`))
	p.resize(t, size{width: 1000, height: 800, dark: true})
	require.Equal(t, "rgb(244, 244, 241)", p.eval(t, `getComputedStyle(document.body).backgroundColor`), "somebody has said so")
}

// Pools, pods and tags can be searched and sorted, and what is chosen stands in the address.
func TestSearchAndSortInABrowser(t *testing.T) {
	store := newCounted()
	for i, waiting := range []int{0, 5, 90, 7} {
		note := fmt.Sprintf("1 0 400 1000000 0 0 w:%d u:%d why:limit h:%d", waiting, 100*i, waiting)
		join(t, store, fmt.Sprint("orders/", []string{"b", "a", "d", "c"}[i]), fmt.Sprint("pod-", i), note, driver.Whole/2)
		join(t, store, "many", fmt.Sprint("pod-", i), note, driver.Whole/4)
	}
	_, c := serveEvery(t, store, "", 100*time.Millisecond)
	p := chromium(t, c.url, size{width: 1000, height: 900})
	p.text(t, "count", "5 pools")
	names := func(table string) string {
		return `[...document.querySelectorAll("` + table + ` td:first-child")].map(e => e.innerText.replace("orders/", "")).join(" ")`
	}
	enter := func(id, value string) {
		p.eval(t, `(() => { const e = document.getElementById("`+id+`"); if (e.type === "checkbox") e.checked = `+strconv.FormatBool(value == "yes")+
			`; else e.value = "`+value+`"; e.dispatchEvent(new Event("input")) })()`)
	}
	enter("q", "ORDERS/")
	p.text(t, "count", "4 of 5 pools")
	enter("sort", "name")
	p.until(t, names("#pools")+` === "a b c d"`)
	enter("sort", "waiting")
	p.until(t, names("#pools")+` === "d c a b"`)
	enter("waits", "yes")
	p.until(t, names("#pools")+` === "d c a"`)
	require.Equal(t, "#q=ORDERS%2F&sort=waiting&waits", p.eval(t, "location.hash"))
	p.eval(t, "window.old = true; location.reload()")
	p.until(t, `!window.old && `+names("#pools")+` === "d c a"`) // not those of the page before
	p.click(t, "#pools a")
	p.until(t, `location.hash === "#pool=orders%2Fd"`)
	p.until(t, names("#processors")+` === "pod-2"`)
	require.Equal(t, " false", p.eval(t, `(id => id("q").value + id("sort").value + " " + id("waits").checked)(id => document.getElementById(id))`),
		"a choice is of one page")
	enter("sort", "name")
	p.until(t, `location.hash === "#pool=orders%2Fd&sort=name"`)
	p.click(t, "#up")
	p.until(t, `location.hash === "#q=ORDERS%2F&sort=waiting&waits"`)
	p.until(t, names("#pools")+` === "d c a"`)
	p.eval(t, `location.hash = "#pool=many&sort=use&waits"`)
	p.until(t, names("#processors")+` === "pod-3 pod-2 pod-1"`)
	enter("q", "2")
	p.until(t, names("#processors")+` === "pod-2"`)
	enter("q", "")
	enter("waits", "no")
	enter("sort", "")
	p.until(t, names("#processors")+` === "pod-0 pod-1 pod-2 pod-3"`)
	require.Equal(t, "#pool=many", p.eval(t, "location.hash"))
	p.eval(t, `location.hash = "#pool=%E0%A4%A&sort=nonsense"`) // no page of a wrong address is broken
	p.text(t, "banners", "the store has no record of this pool")

	store.age.Store(int64(11 * time.Second))
	p.eval(t, `location.hash = "#pool=many"`)
	p.text(t, "banners", "Silent: pod-1 for 11 s; its share of 25.0 % may be unused for 4.0 s more")
	p.text(t, "t-granted", "0")
	p.until(t, `document.querySelector("#processors tr").innerText.includes("silent")`)
}

// A line has a gap where a tag was not among the busiest, and no two lines have the same colour, whatever was drawn before.
func TestTheChartOfTagsInABrowser(t *testing.T) {
	_, c := serveEvery(t, newCounted(), "", time.Hour)
	p := chromium(t, c.url, size{width: 1000, height: 900})
	p.until(t, `!document.getElementById("list").hidden`)
	p.eval(t, `samples = Array.from({length: 60}, (_, i) => ({at: 1e9 + 1000 * i, tags: {steady: 5, ...(i < 20 || i > 40 ? {comes: 3} : {}), toString: 1}}))`)
	p.eval(t, `document.getElementById("quotacard").hidden = false; tags(1e9 + 60000)`)
	parts := func(name string) string {
		return p.eval(t, `(() => { const p = [...document.querySelectorAll("#tags path")].find(p => p.textContent === "`+name+`").getAttribute("d");
			return p.split("M").length - 1 + " " + /NaN|undefined/.test(p) })()`)
	}
	require.Equal(t, "1 false", parts("steady"))
	require.Equal(t, "2 false", parts("comes"))
	for from := range 40 { // the busiest change all the time
		p.eval(t, fmt.Sprintf(`samples = Array.from({length: 9}, (_, i) => ({at: 1e9 + 1000 * i,
			tags: Object.fromEntries(Array.from({length: 8}, (_, k) => ["t" + (%d + k), 5 + k]))})); tags(1e9 + 9000)`, 3*from))
		require.Equal(t, "8", p.eval(t, `String(new Set([...document.querySelectorAll("#tags path")].map(p => p.getAttribute("stroke"))).size)`))
	}
}

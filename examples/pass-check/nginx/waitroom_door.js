// The door: whoever has a pass goes on to @inside, everybody else to the waiting room.
//
// Settings are variables of the server block: $waitroom_room, $waitroom_page, and $waitroom_dev
// ("1" over plain HTTP, where a browser takes no `__Host-` cookie).

import pass from 'waitroom_pass.js';

async function enter(r) {
    const arriving = r.args.wr_pass;
    const now = Math.floor(Date.now() / 1000);
    const shown = { ip: r.remoteAddress, user_agent: r.headersIn['User-Agent'] };
    const name = cookieName(r);
    try {
        const shownPass = arriving || r.headersIn['Waitroom-Pass'] || r.variables['cookie_' + name];
        if (!shownPass) throw { code: 'pass_missing' };
        const text = Array.isArray(shownPass) ? shownPass[0] : shownPass;
        const claims = await pass.check(text, kid => findKey(r, kid), r.variables.waitroom_room, now, shown, ['nonce']);
        if (!arriving) {
            r.variables.waitroom_ticket = claims.sub;
            r.internalRedirect('@inside');
            return;
        }
        // An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
        const rest = (r.variables.args || '').split('&').filter(pair => !pair.startsWith('wr_pass='));
        const path = r.variables.request_uri.split('?')[0].replace(/^[\/\\]*/, '/');
        redirect(r, path + (rest.length ? '?' + rest.join('&') : ''), cookie(r, name, text, claims.exp - now));
    } catch (error) {
        if (!error.code) {
            r.error(error.message); // never the pass
            r.headersOut['Retry-After'] = '5';
            r.return(503);
        } else if ((r.headersIn.Accept || '').includes('text/html')) {
            redirect(r, r.variables.waitroom_page, cookie(r, name, '', 0));
        } else {
            r.headersOut['Set-Cookie'] = [cookie(r, name, '', 0)];
            r.headersOut['Content-Type'] = 'application/json';
            r.headersOut['Cache-Control'] = 'no-store';
            r.return(403, JSON.stringify({ code: error.code, waiting_room: r.variables.waitroom_page }));
        }
    }
}

/// nginx keeps the published keys for five minutes (see nginx.conf). When a pass names a key that
/// is not among them, a second copy is asked that is never older than five seconds.
async function findKey(r, kid) {
    const kept = await keys(r, '/waitroom-keys');
    const found = pass.keyOf(kept, kid);
    if (found) return found;
    const fresh = await keys(r, '/waitroom-keys-fresh');
    return pass.keyOf(fresh, kid);
}

async function keys(r, location) {
    const answer = await r.subrequest(location, { method: 'GET' });
    if (answer.status != 200) throw new Error('the keys of the waiting room could not be fetched');
    return answer.responseText;
}

function redirect(r, to, setCookie) {
    r.headersOut['Set-Cookie'] = [setCookie];
    r.headersOut['Cache-Control'] = 'no-store';
    r.headersOut['Referrer-Policy'] = 'no-referrer';
    r.headersOut.Location = to;
    r.return(303);
}

function cookieName(r) {
    return (r.variables.waitroom_dev ? '' : '__Host-') + 'wr-pass-' + r.variables.waitroom_room;
}

function cookie(r, name, value, maxAge) {
    const secure = r.variables.waitroom_dev ? '' : '; Secure';
    return `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`;
}

export default { enter };

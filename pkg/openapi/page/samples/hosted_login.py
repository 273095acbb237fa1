"""Signs users in through the hosted pages, with the standard library of Python alone.

APPLICATION=<href of the application> python3 hosted_login.py

Then open http://localhost:5000. The application has http://localhost:5000/callback among its
authorizedCallbackUris. API_KEY_FILE names the file with the API key, LISTEN another address.
"""
import base64, hashlib, hmac, html, json, os, secrets, ssl, time, urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

with open(os.environ.get("API_KEY_FILE", ".doorward/apikey.json")) as file:
    KEY = json.load(file)  # id, secret, baseUrl, caFile
APPLICATION = os.environ["APPLICATION"]
LISTEN = os.environ.get("LISTEN", "localhost:5000")
CALLBACK = f"http://{LISTEN}/callback"
HOST_URL = KEY["baseUrl"].removesuffix("/v1")
TLS = ssl.create_default_context(cafile=KEY.get("caFile") or None)
SESSIONS = {}  # by the value of the cookie: {"state"} while a login runs, then {"account"}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signature(text):
    return hmac.digest(KEY["secret"].encode(), text.encode(), hashlib.sha256)


def sign(claims):
    """Makes a JWT (RFC 7519), signed with HS256 and the secret of the API key."""
    text = ".".join(encode(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{encode(signature(text))}"


def verify(token):
    """Returns the claims of a JWT that was signed with the secret of the API key."""
    text, _, signed = token.rpartition(".")
    header, _, payload = text.partition(".")
    if not hmac.compare_digest(decode(signed), signature(text)) or json.loads(decode(header))["alg"] != "HS256":
        raise ValueError("the signature of the assertion is wrong")
    return json.loads(decode(payload))


def read(href):
    """Reads a resource with the API key."""
    request = urllib.request.Request(href)
    request.add_header("Authorization", "Basic " + base64.b64encode(f"{KEY['id']}:{KEY['secret']}".encode()).decode())
    with urllib.request.urlopen(request, context=TLS, timeout=30) as answer:
        return json.load(answer)


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        if path in ("/login", "/logout"):
            self.begin("/sso" if path == "/login" else "/sso/logout")
        elif path == "/callback":
            try:
                self.finish(parse_qs(urlsplit(self.path).query).get("jwtResponse", [""])[0])
            except (KeyError, ValueError) as problem:
                self.answer(400, f"{html.escape(str(problem))} <a href='/login'>Sign in</a>")
        elif account := self.session().get("account"):
            self.answer(200, f"Signed in as {html.escape(account['email'])}. <a href='/logout'>Sign out</a>")
        else:
            self.answer(200, "<a href='/login'>Sign in</a>")

    def begin(self, path):
        """Sends the browser to the hosted pages with a signed request."""
        state = secrets.token_urlsafe()
        request = sign({"iss": KEY["id"], "sub": APPLICATION, "iat": int(time.time()), "jti": secrets.token_urlsafe(),
                        "cb_uri": CALLBACK, "state": state})
        self.redirect(f"{HOST_URL}{path}?jwtRequest={request}", {"state": state})

    def finish(self, assertion):
        """Takes the signed answer, which counts only for the request of this browser, and once."""
        claims, state = verify(assertion), self.session().pop("state", None)
        if state is None or claims["state"] != state:
            raise ValueError("this is not the answer to a request of this browser")
        if "err" in claims:
            raise ValueError(claims["err"]["message"])
        if claims["aud"] != KEY["id"] or time.time() > claims["exp"]:
            raise ValueError("the assertion is for another application, or too old")
        self.redirect("/", {} if claims["status"] == "LOGOUT" else {"account": read(claims["sub"])})

    def session(self):
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        return SESSIONS.get(cookie.value, {}) if cookie else {}

    def redirect(self, address, session):
        """Redirects with a new session, under a new cookie (against session fixation)."""
        name = secrets.token_urlsafe()
        SESSIONS[name] = session
        self.send_response(302)
        self.send_header("Set-Cookie", f"session={name}; HttpOnly; SameSite=Lax; Path=/")
        self.send_header("Location", address)
        self.end_headers()

    def answer(self, status, page):
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.encode())


host, _, port = LISTEN.partition(":")
ThreadingHTTPServer((host, int(port)), Site).serve_forever()

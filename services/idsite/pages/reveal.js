for (const input of document.querySelectorAll("input[type=password]")) {
  const { show, hide, showLabel, hideLabel } = input.dataset;
  const both = document.createElement("div"), toggle = document.createElement("button");
  both.className = "with-toggle";
  toggle.type = "button";
  toggle.className = "toggle";
  const set = (shown) => {
    input.type = shown ? "text" : "password";
    toggle.textContent = shown ? hide : show;
    toggle.setAttribute("aria-label", shown ? hideLabel : showLabel);
  };
  toggle.addEventListener("click", () => set(input.type === "password"));
  set(false);
  const focused = document.activeElement === input;
  input.replaceWith(both);
  both.append(input, toggle);
  if (focused) input.focus();
}

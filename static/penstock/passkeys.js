// Report why a passkey could not be used: the scripts of django-allauth only write it to the browser's console.
document.addEventListener("allauth.error", (event) => {
  const place = document.querySelector("[data-passkey-error]");
  if (!place) return;
  event.preventDefault();
  const cancelled = event.detail.exception && event.detail.exception.name === "NotAllowedError";
  place.textContent = cancelled
    ? "No passkey was used. Try again, or choose another method."
    : "This browser cannot use a passkey on this address. Choose another method.";
  place.hidden = false;
});

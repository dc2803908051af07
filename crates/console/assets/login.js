// A link of `sinew console` has its code behind `#`, where servers and logs do not see it.

const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, '', location.pathname + location.search);
  const form = document.getElementById('with-token');
  form.elements.code.value = code;
  form.elements.token.required = false;
  form.submit();
}

/** Something that is refused, with nothing spent and nothing sent. The message never shows data. */
final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;
    final String why;

    Refused(String why, String message) {
        super(why + ": " + message);
        this.why = why;
    }
}

/* int main(){return 0;}, but for a library it was linked to. */
extern int registered_probes;

int main(void)
{
    return registered_probes == 0;
}

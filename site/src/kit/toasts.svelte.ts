export interface Toast {
  id: number;
  text: string;
  link?: { href: string; text: string } | undefined;
}

const SHOWN = 6000;

class Toasts {
  list = $state.raw<Toast[]>([]);
  #last = 0;

  show(text: string, link?: Toast["link"]): void {
    const id = ++this.#last;
    this.list = [...this.list.slice(-1), { id, text, link }];
    setTimeout(() => this.close(id), SHOWN);
  }

  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
